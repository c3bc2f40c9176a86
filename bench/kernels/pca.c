/* pca: means of the rows of a matrix and the covariance of each pair of rows. */
#include "mapreduce.h"

enum { ROWS = 2000, COLUMNS = 2400, RANGE = 100 };

struct analysis {
	int *matrix;         /* ROWS × COLUMNS */
	int means[ROWS];
	int64_t *covariance; /* ROWS × ROWS, upper triangle */
};

static int row_mean(const int *row)
{
	int64_t sum = 0;
	for (size_t i = 0; i < COLUMNS; i++)
		sum += row[i];
	return sum / COLUMNS;
}

static int64_t covariance(const struct analysis *a, size_t first, size_t second)
{
	const int *x = a->matrix + first * COLUMNS, *y = a->matrix + second * COLUMNS;
	int x_mean = a->means[first], y_mean = a->means[second];
	int sum = 0; /* COLUMNS × RANGE² fits */
	for (size_t i = 0; i < COLUMNS; i++)
		sum += (x[i] - x_mean) * (y[i] - y_mean);
	return sum / (COLUMNS - 1);
}

static void map_means(void *shared, int worker, size_t begin, size_t end)
{
	struct analysis *a = shared;
	(void)worker;
	for (size_t row = begin; row < end; row++)
		a->means[row] = row_mean(a->matrix + row * COLUMNS);
}

/* Item i stands for the rows i and ROWS-1-i, so that every item is the same work. */
static void map_covariance(void *shared, int worker, size_t begin, size_t end)
{
	struct analysis *a = shared;
	(void)worker;
	for (size_t item = begin; item < end; item++)
		for (size_t half = 0; half < 2; half++) {
			size_t row = half ? ROWS - 1 - item : item;
			for (size_t other = row; other < ROWS; other++)
				a->covariance[row * ROWS + other] = covariance(a, row, other);
		}
}

MR_OUTSIDE static int *make_matrix(void)
{
	int *matrix = mr_allocate(sizeof *matrix * ROWS * COLUMNS);
	uint64_t seed = 6;
	for (size_t i = 0; i < (size_t)ROWS * COLUMNS; i++)
		matrix[i] = mr_random(&seed) % RANGE;
	return matrix;
}

int main(void)
{
	static struct analysis a;
	a.matrix = make_matrix();
	a.covariance = mr_allocate(sizeof *a.covariance * ROWS * ROWS);
	double start = mr_seconds();
	mr_run(ROWS, map_means, &a);
	mr_run(ROWS / 2, map_covariance, &a);
	double seconds = mr_seconds() - start;
	return mr_report("pca", mr_checksum(a.covariance, sizeof *a.covariance * ROWS * ROWS), seconds);
}
