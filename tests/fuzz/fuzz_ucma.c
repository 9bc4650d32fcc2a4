// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any commands on the event channels of rdma_cm, through the decoder, the ids
 * and the connection manager.  Addresses are bent into a window.  Promised
 * beside the sanitizers': nothing is written outside the window, and closed
 * channels leave no id.
 */
#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "tests/unit/cma_fake.h"

#define WINDOW 4096u
#define NOWHERE 0xdead000000000000ull

static uint8_t *window;

/* Pages that may not be touched lie on both sides. */
static void map_window(void)
{
	uint8_t *p = mmap(NULL, 3 * WINDOW, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED ||
	    mprotect(p + WINDOW, WINDOW, PROT_READ | PROT_WRITE))
		abort();
	window = p + WINDOW;
}

static uint64_t bend(uint64_t addr)
{
	if (addr >> 56 == 0xff)
		return NOWHERE | (addr & 0xffff);
	return (uintptr_t)window + addr % (WINDOW + 256);
}

static uint16_t size_of(uint16_t family)
{
	switch (family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case CMA_AF_IB:
		return sizeof(struct cma_sockaddr_ib);
	}
	return sizeof(struct sockaddr_in6);
}

/* Sizes that fit are found by chance too seldom. */
static void mend(struct rdma_ucm_cmd_hdr *hdr, size_t size)
{
	uint64_t *first = (uint64_t *)(hdr + 1);
	struct rdma_ucm_join_mcast *join = (void *)first;
	struct rdma_ucm_bind *bind = (void *)first;

	hdr->cmd %= 24;
	hdr->in = size - sizeof(*hdr);
	switch (hdr->cmd) {
	case RDMA_USER_CM_CMD_CREATE_ID:
		first[1] = bend(first[1]);
		break;
	case RDMA_USER_CM_CMD_BIND:
		bind->reserved = 0;
		bind->addr_size = size_of(bind->addr.ss_family);
		break;
	case RDMA_USER_CM_CMD_JOIN_MCAST:
		join->addr_size = size_of(join->addr.ss_family);
		join->join_flags &= 1;
		first[0] = bend(first[0]);
		break;
	case RDMA_USER_CM_CMD_DESTROY_ID:
	case RDMA_USER_CM_CMD_QUERY:
	case RDMA_USER_CM_CMD_QUERY_ROUTE:
	case RDMA_USER_CM_CMD_GET_EVENT:
	case RDMA_USER_CM_CMD_SET_OPTION:
	case RDMA_USER_CM_CMD_INIT_QP_ATTR:
	case RDMA_USER_CM_CMD_MIGRATE_ID:
	case RDMA_USER_CM_CMD_JOIN_IP_MCAST:
	case RDMA_USER_CM_CMD_LEAVE_MCAST:
		first[0] = bend(first[0]);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rdma_ucm_cmd_hdr *hdr;
	struct cma_objects n;
	size_t len;
	ssize_t ret;
	int fd[2];

	if (!window)
		map_window();
	fake_begin();
	fd[0] = fake_open();
	fd[1] = fake_open();
	while (size > 3) {
		uint8_t op = data[0];

		len = data[1] | (data[2] & 1) << 8;
		data += 3;
		size -= 3;
		if (len > size)
			len = size;
		if (op == 0xff) {
			cma_tick(fake.cma, fake.now += 5000000000ull);
			continue;
		}
		memset(window, 0, WINDOW);
		memcpy(window, data, len);
		data += len;
		size -= len;
		hdr = (void *)window;
		if (op & 2 && len > sizeof(*hdr) + 8)
			mend(hdr, len);
		ret = ucma_write(&fake_ops, fd[op & 1],
				 fake_channel(fd[op & 1]), window, len);
		assert(ret < 0 ? ret > -4096 : (size_t)ret == len);
	}
	cma_close(fake.cma, fake.now, fake_channel(fd[0]));
	cma_close(fake.cma, fake.now, fake_channel(fd[1]));
	cma_count(fake.cma, &n);
	assert(!n.ids && !n.channels);
	cma_free(fake.cma);
	return 0;
}
