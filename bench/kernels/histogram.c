/* histogram: counts of each value of red, green and blue over the frames of a film. */
#include "mapreduce.h"

enum { WIDTH = 4096, HEIGHT = 4096, FRAMES = 48, CHANNELS = 3, VALUES = 256 };

struct histogram {
	uint32_t count[CHANNELS][VALUES];
};
struct film {
	const uint8_t *pixels; /* HEIGHT rows of WIDTH pixels of CHANNELS bytes */
	struct histogram part[MR_WORKERS];
};

static void count_row(struct histogram *h, const uint8_t *row)
{
	for (size_t x = 0; x < WIDTH; x++)
		for (size_t c = 0; c < CHANNELS; c++)
			h->count[c][row[x * CHANNELS + c]]++;
}

static void map(void *shared, int worker, size_t begin, size_t end)
{
	struct film *film = shared;
	for (size_t row = begin; row < end; row++)
		count_row(&film->part[worker], film->pixels + row % HEIGHT * WIDTH * CHANNELS);
}

static void reduce(struct film *film)
{
	for (size_t w = 1; w < MR_WORKERS; w++)
		for (size_t c = 0; c < CHANNELS; c++)
			for (size_t v = 0; v < VALUES; v++)
				film->part[0].count[c][v] += film->part[w].count[c][v];
}

MR_OUTSIDE static uint8_t *make_pixels(void)
{
	size_t bytes = (size_t)WIDTH * HEIGHT * CHANNELS;
	uint8_t *pixels = mr_allocate(bytes);
	uint64_t seed = 1;
	for (size_t i = 0; i < bytes; i += 8) {
		uint64_t r = mr_random(&seed);
		memcpy(pixels + i, &r, 8);
	}
	return pixels;
}

int main(void)
{
	static struct film film;
	film.pixels = make_pixels();
	double start = mr_seconds();
	mr_run((size_t)HEIGHT * FRAMES, map, &film);
	reduce(&film);
	return mr_report("histogram", mr_checksum(&film.part[0], sizeof film.part[0]), mr_seconds() - start);
}
