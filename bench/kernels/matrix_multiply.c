/* matrix_multiply: the product of two square matrices, row by column. */
#include "mapreduce.h"

enum { SIZE = 1792 };

struct matrices {
	int *a, *b_columns, *product; /* SIZE × SIZE; b is kept column by column */
};

static int dot(const int *row, const int *column)
{
	int sum = 0;
	for (size_t i = 0; i < SIZE; i++)
		sum += row[i] * column[i];
	return sum;
}

static void multiply_row(struct matrices *m, size_t row)
{
	for (size_t column = 0; column < SIZE; column++)
		m->product[row * SIZE + column] = dot(m->a + row * SIZE, m->b_columns + column * SIZE);
}

static void map(void *shared, int worker, size_t begin, size_t end)
{
	(void)worker;
	for (size_t row = begin; row < end; row++)
		multiply_row(shared, row);
}

MR_OUTSIDE static int *make_matrix(uint64_t seed)
{
	int *matrix = mr_allocate(sizeof *matrix * SIZE * SIZE);
	for (size_t i = 0; i < (size_t)SIZE * SIZE; i++)
		matrix[i] = mr_random(&seed) % 1000;
	return matrix;
}

int main(void)
{
	struct matrices m = {make_matrix(4), make_matrix(5), mr_allocate(sizeof(int) * SIZE * SIZE)};
	double start = mr_seconds();
	mr_run(SIZE, map, &m);
	double seconds = mr_seconds() - start;
	return mr_report("matrix_multiply", mr_checksum(m.product, sizeof(int) * SIZE * SIZE), seconds);
}
