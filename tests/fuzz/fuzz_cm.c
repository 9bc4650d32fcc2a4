// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any MADs, in any order, between a connection manager's own calls.  An input
 * is a sequence of steps; what the manager sends goes back to it or is lost.
 * Promised beside the sanitizers': events are of conversations that live, and
 * in the end none is left.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "rnic/cm.h"

#define CONNS 16
#define QUEUE 64

static struct rnic_cm cm;
static struct rnic_cm_conn conns[CONNS];
static uint8_t queue[QUEUE][RNIC_MAD_LEN];
static uint32_t queued, answers;
static uint32_t id[CONNS];
static struct rnic_cm_path path = {.port = 1, .pkey = 0xffff, .mtu = 5};

static void on_send(void *host, const struct rnic_cm_path *p,
		    const uint8_t *mad)
{
	(void)host;
	(void)p;
	if (queued < QUEUE)
		memcpy(queue[queued++], mad, RNIC_MAD_LEN);
}

static int on_request(void *host, uint32_t conn, const struct rnic_cm_path *p,
		      const struct rnic_cm_msg *msg)
{
	(void)host;
	(void)p;
	(void)msg;
	assert(rnic_cm_find(&cm, conn));
	answers = answers << 1 | answers >> 31;
	if (answers & 4)
		return answers & 1 ? RNIC_CM_DROP : RNIC_CM_INVALID_SERVICE_ID;
	id[conn % CONNS] = conn;
	return 0;
}

static void on_event(void *host, uint32_t conn, enum rnic_cm_event event,
		     const struct rnic_cm_msg *msg)
{
	(void)host;
	(void)event;
	(void)msg;
	assert(rnic_cm_find(&cm, conn));
	if (answers & 8)
		rnic_cm_destroy(&cm, 0, conn);
}

static const struct rnic_cm_ops ops = {on_send, on_request, on_event};

/* A MAD of the input, with a header that lets most of them in. */
static size_t feed(uint64_t now, const uint8_t *data, size_t size)
{
	uint8_t mad[RNIC_MAD_LEN] = {1, 7, 2, 3};
	size_t n = size > 2 ? data[1] : 0;

	if (n > size - 2)
		n = size - 2;
	mad[17] = 0x10 + data[0] % 16;
	memcpy(mad + 24, data + 2, n < 232 ? n : 232);
	/* Numbers that exist are found by chance too seldom. */
	if (data[0] & 0x80 && n > 1)
		memcpy(mad + 28,
		       (uint8_t[4]){0, 1 + (data[2] & 1), 0, data[3] % CONNS},
		       4);
	rnic_cm_receive(&cm, now, &path, mad, sizeof(mad));
	return n + 2;
}

static void step(uint8_t op, uint64_t now)
{
	struct rnic_cm_param p = {.qpn = op, .ca_guid = 1, .private_len = op};
	uint32_t *who = &id[op % CONNS], mask;
	struct rnic_qp_attr attr = {.state = op % 7};

	switch (op >> 4) {
	case 0:
		rnic_cm_create(&cm, who);
		break;
	case 1:
		rnic_cm_connect(&cm, now, *who, &path, 7, &p);
		break;
	case 2:
		rnic_cm_accept(&cm, now, *who, &p);
		break;
	case 3:
		rnic_cm_ready(&cm, now, *who);
		break;
	case 4:
		rnic_cm_reject(&cm, now, *who, 28, &p, op);
		break;
	case 5:
		rnic_cm_disconnect(&cm, now, *who);
		break;
	case 6:
		rnic_cm_destroy(&cm, now, *who);
		break;
	case 7:
		rnic_cm_notify(&cm, now, *who);
		break;
	case 8:
		rnic_cm_sidr_request(&cm, now, *who, &path, 7, &p, op);
		break;
	case 9:
		rnic_cm_sidr_reply(&cm, now, *who, 0, 1, 2, &p, op);
		break;
	case 10:
		rnic_cm_qp_attr(&cm, *who, &attr, &mask);
		break;
	}
}

static void deliver(uint64_t now, bool all)
{
	uint8_t mad[RNIC_MAD_LEN];

	while (queued) {
		memcpy(mad, queue[0], sizeof(mad));
		memmove(queue[0], queue[1], --queued * sizeof(mad));
		rnic_cm_receive(&cm, now, &path, mad, sizeof(mad));
		if (!all)
			break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t now = 1;
	uint32_t i;

	if (size < 4)
		return 0;
	memset(conns, 0, sizeof(conns));
	memset(id, 0, sizeof(id));
	queued = 0;
	memcpy(&answers, data, 4);
	rnic_cm_init(&cm, conns, CONNS, 1, &ops, NULL);
	for (data += 4, size -= 4; size > 2;) {
		uint8_t op = *data++;
		size_t n;

		size--;
		if (op < 0xb0)
			step(op, now);
		else if (op < 0xc0)
			deliver(now, op & 1);
		else if (op < 0xd0)
			rnic_cm_tick(&cm, now += 1ull << (25 + op % 16));
		else if (op < 0xe0 && queued)
			queued--;
		else if (op >= 0xe0) {
			n = feed(now, data, size);
			data += n;
			size -= n;
		}
	}
	for (i = 0; i < CONNS; i++)
		rnic_cm_destroy(&cm, now, conns[i].state ? conns[i].id : 0);
	for (i = 0; i < 1000 && cm.live; i++) {
		queued = 0;
		now += 10000000000ull;
		rnic_cm_tick(&cm, now);
	}
	assert(!cm.live);
	return 0;
}
