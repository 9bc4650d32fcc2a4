/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The stores that the device acts on, and what orders them.
 */
#ifndef SF_DOORBELL_H
#define SF_DOORBELL_H

#include <errno.h>
#include <unistd.h>

#include <util/udma_barrier.h>

#include "scalefabric.h"

/*
 * Before the first commit word of a batch, and before a doorbell: payload and
 * bodies first.  The barrier is for a card, the release order of the store that
 * follows is for a device that is another CPU.
 */
static inline void sf_publish_fence(void)
{
	udma_to_device_barrier();
}

static inline void sf_store_release(uint64_t *p, uint64_t value)
{
	__atomic_store_n(p, value, __ATOMIC_RELEASE);
}

/* One 8-byte store to the cell.  Caller holds the queue's lock. */
static inline void sf_ring(uint64_t *cell, uint64_t value)
{
	udma_to_device_barrier();
	sf_store_release(cell, value);
}

/*
 * Tell a device that cannot see the store.  Caller holds no lock: the software
 * RNIC does the work inside.  The request is committed whatever this returns,
 * so there is nothing to report; only a signal is worth another try.
 */
static inline void sf_notify_device(const struct ibv_context *context,
				    const struct sf_notify *notify)
{
	ssize_t n;

	do {
		n = write(context->cmd_fd, notify,
			  offsetof(struct sf_notify, bad_wr));
	} while (unlikely(n < 0 && errno == EINTR));
}

#endif
