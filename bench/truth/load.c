/* A load for memcached, the same in every run: it stores 10,000 values, then asks for so many,
 * one in sixteen of which it stores anew, in batches of 50, and ends the server.
 *
 * usage: load PORT REQUESTS */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CLIENTS = 4, KEYS = 10000, BATCH = 50, VALUE = 200 };

struct server {
	FILE *in, *out;
};

static int connect_to(int port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (int try = 0; try < 500; try++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
			return fd;
		close(fd);
		usleep(20000);
	}
	return -1;
}

static void store(struct server *server, unsigned key)
{
	static char value[VALUE + 1];
	memset(value, 'a' + (int)(key % 26), VALUE);
	fprintf(server->out, "set key:%u 0 0 %d\r\n%s\r\n", key, VALUE, value);
}

/* Reads the answers to so many requests. */
static void answers(struct server *server, unsigned count)
{
	char line[1024];
	fflush(server->out);
	while (count > 0) {
		if (!fgets(line, sizeof line, server->in)) {
			fputs("load: the server is gone\n", stderr);
			exit(1);
		}
		count -= !strncmp(line, "STORED", 6) || !strncmp(line, "END", 3);
	}
}

int main(int argc, char **argv)
{
	static char room[CLIENTS][1 << 16];
	struct server servers[CLIENTS];
	int at_once = 1;
	if (argc != 3)
		return 2;
	for (int i = 0; i < CLIENTS; i++) {
		int fd = connect_to(atoi(argv[1]));
		if (fd < 0)
			return 1;
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
		servers[i] = (struct server){fdopen(fd, "r"), fdopen(dup(fd), "w")};
		setvbuf(servers[i].out, room[i], _IOFBF, sizeof room[i]);
	}
	for (unsigned key = 0; key < KEYS; key += BATCH) {
		for (unsigned i = 0; i < BATCH; i++)
			store(&servers[0], key + i);
		answers(&servers[0], BATCH);
	}
	uint32_t state = 42;
	for (long done = 0, all = atol(argv[2]); done < all; done += BATCH * CLIENTS) {
		for (int client = 0; client < CLIENTS; client++) {
			for (int i = 0; i < BATCH; i++) {
				state = state * 1664525 + 1013904223;
				unsigned key = (state >> 8) % (KEYS + KEYS / 10);
				if (state >> 28 == 0)
					store(&servers[client], key);
				else
					fprintf(servers[client].out, "get key:%u\r\n", key);
			}
			fflush(servers[client].out);
		}
		for (int client = 0; client < CLIENTS; client++)
			answers(&servers[client], BATCH);
	}
	fputs("shutdown\r\n", servers[0].out);
	fflush(servers[0].out);
	printf("done\n");
	return 0;
}
