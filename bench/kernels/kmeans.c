/* kmeans: points of 128 dimensions, as image descriptors have, are assigned to the nearest of the means, and the means
 * moved into the middle of their points, until the rounds are over. */
#include "mapreduce.h"

enum { POINTS = 40000, DIMENSIONS = 128, MEANS = 64, ROUNDS = 20, RANGE = 256 };

struct point {
	int at[DIMENSIONS];
};
struct sums {
	int64_t at[MEANS][DIMENSIONS];
	int64_t members[MEANS];
};
struct clusters {
	struct point *points;
	int *nearest; /* for each point */
	struct point means[MEANS];
	struct sums sums[MR_WORKERS];
};

static unsigned square_distance(const struct point *a, const struct point *b)
{
	unsigned sum = 0;
	for (size_t d = 0; d < DIMENSIONS; d++) {
		int difference = a->at[d] - b->at[d];
		sum += difference * difference;
	}
	return sum;
}

static int nearest_mean(const struct clusters *c, const struct point *point)
{
	int nearest = 0;
	unsigned least = square_distance(point, &c->means[0]);
	for (int m = 1; m < MEANS; m++) {
		unsigned distance = square_distance(point, &c->means[m]);
		if (distance < least) {
			least = distance;
			nearest = m;
		}
	}
	return nearest;
}

static void add_to_sum(struct sums *sums, int mean, const struct point *point)
{
	for (size_t d = 0; d < DIMENSIONS; d++)
		sums->at[mean][d] += point->at[d];
	sums->members[mean]++;
}

static void map(void *shared, int worker, size_t begin, size_t end)
{
	struct clusters *c = shared;
	for (size_t p = begin; p < end; p++) {
		c->nearest[p] = nearest_mean(c, &c->points[p]);
		add_to_sum(&c->sums[worker], c->nearest[p], &c->points[p]);
	}
}

static void move_mean(struct clusters *c, int mean)
{
	int64_t members = 0;
	for (int w = 0; w < MR_WORKERS; w++)
		members += c->sums[w].members[mean];
	for (size_t d = 0; d < DIMENSIONS && members; d++) {
		int64_t sum = 0;
		for (int w = 0; w < MR_WORKERS; w++)
			sum += c->sums[w].at[mean][d];
		c->means[mean].at[d] = sum / members;
	}
}

MR_OUTSIDE static void make_points(struct clusters *c)
{
	uint64_t seed = 2;
	c->points = mr_allocate(POINTS * sizeof *c->points);
	c->nearest = mr_allocate(POINTS * sizeof *c->nearest);
	for (size_t p = 0; p < POINTS; p++)
		for (size_t d = 0; d < DIMENSIONS; d++)
			c->points[p].at[d] = mr_random(&seed) % RANGE;
	memcpy(c->means, c->points, sizeof c->means);
}

int main(void)
{
	static struct clusters c;
	make_points(&c);
	double start = mr_seconds();
	for (int round = 0; round < ROUNDS; round++) {
		memset(c.sums, 0, sizeof c.sums);
		mr_run(POINTS, map, &c);
		for (int m = 0; m < MEANS; m++)
			move_mean(&c, m);
	}
	return mr_report("kmeans", mr_checksum(c.means, sizeof c.means), mr_seconds() - start);
}
