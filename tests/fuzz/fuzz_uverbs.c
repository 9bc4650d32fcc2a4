// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any bytes as a uverbs command, over a backend that does nothing.
 *
 * The command lies in a small window; every address in it is bent into the
 * window or to an address where nothing is, so that what the decoder writes
 * can be watched.  Promises that are checked beside the sanitizers': nothing
 * is written outside the window, and a command that fails leaves no object.
 */
#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include "tests/unit/uverbs_fake.h"

#define WINDOW 8192u
#define EXTENDED IB_USER_VERBS_CMD_FLAG_EXTENDED
#define NOWHERE 0xdead000000000000ull

static uint8_t *window;

/* Pages that may not be touched lie on both sides. */
static void map_window(void)
{
	uint8_t *p = mmap(NULL, WINDOW + 2 * RNIC_PAGE, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED ||
	    mprotect(p + RNIC_PAGE, WINDOW, PROT_READ | PROT_WRITE))
		abort();
	window = p + RNIC_PAGE;
}

static uint64_t bend(uint64_t addr)
{
	if (addr >> 56 == 0xff)
		return NOWHERE | (addr & 0xffff);
	return (uintptr_t)window + addr % (WINDOW + 256);
}

static int objects(void)
{
	return fake.pds + fake.ahs + fake.cqs + fake.srqs + fake.qps +
	       fake.flows + fake.mrs + fake.mws + fake.dms + fake.fds;
}

static int run_ioctl(size_t size)
{
	struct ib_uverbs_ioctl_hdr *hdr = (void *)window;
	size_t i, n = size < sizeof(*hdr) ? 0 : (size - sizeof(*hdr)) / 16;
	struct ib_uverbs_attr *attr = hdr->attrs;

	/* What every input would fail at, were it left to chance. */
	hdr->reserved1 = hdr->reserved2 = 0;
	hdr->driver_id = 0;
	if (hdr->length & 1) {
		hdr->num_attrs = n;
		hdr->length = sizeof(*hdr) + n * sizeof(*attr);
	}
	if (n > hdr->num_attrs)
		n = hdr->num_attrs; /* what follows is data */
	/* Numbers of commands may be values; as addresses they are nowhere. */
	for (i = 0; i < n; i++)
		if (attr[i].len > 8 ||
		    attr[i].data & ~(uint64_t)(0xffff | EXTENDED))
			attr[i].data = bend(attr[i].data);
	return uverbs_ioctl(&fake_ops, FAKE_CTX, FAKE_DEV, window);
}

static int run_write(size_t size)
{
	struct ib_uverbs_cmd_hdr *hdr = (void *)window;
	uint64_t *response = (uint64_t *)(hdr + 1);
	ssize_t n;

	if (size < sizeof(*hdr) + sizeof(*response))
		memset(window + size, 0, 16);
	*response = bend(*response);
	n = uverbs_write(&fake_ops, FAKE_CTX, FAKE_DEV, window, size);
	assert(n < 0 || (size_t)n == size);
	return n < 0 ? -n : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int err;

	if (!size || size > 2048)
		return 0;
	if (!window)
		map_window();
	fake_reset();
	fake.err = data[0] & 2 ? ENOMEM : 0;
	fake.unread = data[0] >> 4;
	fake.rsp.destroyed.comp_events = data[0] >> 3;
	memset(window, 0, WINDOW);
	memcpy(window, data + 1, size - 1);
	err = data[0] & 1 ? run_ioctl(size - 1) : run_write(size - 1);
	assert(err >= 0 && err < 4096);
	assert(!err || objects() <= 0);
	return 0;
}
