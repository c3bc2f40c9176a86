// What ECALLs of these tests are given: their work, memory that is lent with it, and whether that was taken.
#pragma once
#include "calls.h"
#include <stddef.h>

struct call {
	struct work work;
	void *arena;
	size_t arena_bytes;
	int refused;
};
