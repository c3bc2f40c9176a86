/* linear_regression: the line of least squares through points of two bytes each. */
#include "mapreduce.h"

enum { POINTS = 1 << 25, BLOCK = 4096, ROUNDS = 32 };

struct point {
	int8_t x, y;
};
struct sums {
	int64_t n, x, y, xx, yy, xy;
} __attribute__((aligned(128))); /* a cache line for each worker */
struct cloud {
	const struct point *points;
	struct sums part[MR_WORKERS];
};

static void sum_block(struct sums *sums, const struct point *points)
{
	int x = 0, y = 0, xx = 0, yy = 0, xy = 0;
	for (size_t i = 0; i < BLOCK; i++) {
		x += points[i].x;
		y += points[i].y;
		xx += points[i].x * points[i].x;
		yy += points[i].y * points[i].y;
		xy += points[i].x * points[i].y;
	}
	sums->n += BLOCK;
	sums->x += x;
	sums->y += y;
	sums->xx += xx;
	sums->yy += yy;
	sums->xy += xy;
}

static void map(void *shared, int worker, size_t begin, size_t end)
{
	struct cloud *cloud = shared;
	for (size_t block = begin; block < end; block++)
		sum_block(&cloud->part[worker], cloud->points + block % (POINTS / BLOCK) * BLOCK);
}

static struct sums reduce(const struct cloud *cloud)
{
	struct sums all = {0};
	for (int w = 0; w < MR_WORKERS; w++) {
		const struct sums *part = &cloud->part[w];
		all.n += part->n;
		all.x += part->x;
		all.y += part->y;
		all.xx += part->xx;
		all.yy += part->yy;
		all.xy += part->xy;
	}
	return all;
}

MR_OUTSIDE static struct point *make_points(void)
{
	struct point *points = mr_allocate(POINTS * sizeof *points);
	uint64_t seed = 3;
	for (size_t i = 0; i < POINTS; i++) {
		uint64_t r = mr_random(&seed);
		points[i].x = (int8_t)r;
		points[i].y = (int8_t)(points[i].x / 2 + (int)(r >> 8 & 31));
	}
	return points;
}

int main(void)
{
	static struct cloud cloud;
	cloud.points = make_points();
	double start = mr_seconds();
	mr_run((size_t)POINTS / BLOCK * ROUNDS, map, &cloud);
	struct sums s = reduce(&cloud);
	double x = (double)s.x / s.n, y = (double)s.y / s.n;
	printf("slope=%.3f\n", ((double)s.xy / s.n - x * y) / ((double)s.xx / s.n - x * x));
	return mr_report("linear_regression", mr_checksum(&s, 6 * sizeof s.n), mr_seconds() - start);
}
