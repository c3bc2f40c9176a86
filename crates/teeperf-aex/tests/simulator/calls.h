// What host and enclave of the tests call of each other.
#pragma once
struct work {
	long rounds;
	unsigned long seed;
	long is_nested;
};
enum { ECALL_WORK, ECALL_OCALLS, ECALL_EXCEPTIONS, ECALL_FLOATS };
enum { OCALL_OUTSIDE, OCALL_NESTED };
