/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the end-to-end programs here share: one RC end and its memory. */
#ifndef E2E_RC_H
#define E2E_RC_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CHECK(x)                                                               \
	do {                                                                   \
		if (!(x)) {                                                    \
			fprintf(stderr, "%d: %s:%d: %s failed (errno %d)\n",   \
				getpid(), __FILE__, __LINE__, #x, errno);      \
			_exit(1);                                              \
		}                                                              \
	} while (0)

#define RC_ALL                                                                 \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |                    \
	 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define RC_NONE (-2) /* as a status: no completion came */

struct rc_address {
	uint32_t qpn;
	uint32_t lid;
	uint64_t addr;
	uint32_t rkey;
	uint32_t reserved; /* no padding: it is sent as it is */
};

struct rc {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct rc_address peer;
	uint8_t timeout, retry_cnt, rnr_retry;
};

static inline uint64_t rc_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static inline void rc_open(struct rc *rc, int index)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	CHECK(list && list[0] && list[index]);
	CHECK(rc->ctx = ibv_open_device(list[index]));
	ibv_free_device_list(list);
	CHECK(rc->pd = ibv_alloc_pd(rc->ctx));
	if (!rc->timeout) {
		rc->timeout = 14; /* 67 ms */
		rc->retry_cnt = 7;
		rc->rnr_retry = 7; /* for ever */
	}
}

/* A CQ with a channel and a QP on it; @buf is registered unless it is NULL. */
static inline void rc_create(struct rc *rc, void *buf, size_t len)
{
	struct ibv_qp_init_attr init = {
		.cap = {64, 64, 2, 2, 64},
		.qp_type = IBV_QPT_RC,
	};

	CHECK(rc->channel = ibv_create_comp_channel(rc->ctx));
	CHECK(rc->cq = ibv_create_cq(rc->ctx, 256, rc, rc->channel, 0));
	init.send_cq = init.recv_cq = rc->cq;
	CHECK(rc->qp = ibv_create_qp(rc->pd, &init));
	if (buf)
		CHECK(rc->mr = ibv_reg_mr(rc->pd, buf, len, RC_ALL));
}

static inline void rc_destroy(struct rc *rc)
{
	CHECK(!ibv_destroy_qp(rc->qp));
	CHECK(!ibv_destroy_cq(rc->cq));
	CHECK(!ibv_destroy_comp_channel(rc->channel));
	if (rc->mr)
		CHECK(!ibv_dereg_mr(rc->mr));
	rc->mr = NULL;
}

static inline void rc_close(struct rc *rc)
{
	CHECK(!ibv_dealloc_pd(rc->pd));
	CHECK(!ibv_close_device(rc->ctx));
}

static inline struct rc_address rc_address(struct rc *rc)
{
	struct rc_address a = {.qpn = rc->qp->qp_num};
	struct ibv_port_attr port;

	CHECK(!ibv_query_port(rc->ctx, 1, &port));
	a.lid = port.lid;
	if (rc->mr) {
		a.addr = (uintptr_t)rc->mr->addr;
		a.rkey = rc->mr->rkey;
	}
	return a;
}

static inline int rc_state(struct rc *rc)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(!ibv_query_qp(rc->qp, &attr, IBV_QP_STATE, &init));
	return attr.qp_state;
}

static inline void rc_connect(struct rc *rc, const struct rc_address *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = RC_ALL & ~IBV_ACCESS_LOCAL_WRITE,
	};

	rc->peer = *peer;
	CHECK(!ibv_modify_qp(rc->qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     IBV_QP_ACCESS_FLAGS));
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qpn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.ah_attr = {.dlid = (uint16_t)peer->lid, .port_num = 1},
	};
	CHECK(!ibv_modify_qp(rc->qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER));
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = rc->timeout;
	attr.retry_cnt = rc->retry_cnt;
	attr.rnr_retry = rc->rnr_retry;
	attr.max_rd_atomic = 4;
	CHECK(!ibv_modify_qp(rc->qp, &attr,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				     IBV_QP_MAX_QP_RD_ATOMIC));
}

/* 0 or an errno. */
static inline int rc_recv(struct rc *rc, uint64_t off, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)rc->mr->addr + off, len, rc->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = 1000, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	return ibv_post_recv(rc->qp, &wr, &bad);
}

/* @len bytes at @off here, at the same place of the peer's region. */
static inline int rc_post(struct rc *rc, int opcode, uint64_t off, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)rc->mr->addr + off, len, rc->mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = (uint64_t)opcode,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = (enum ibv_wr_opcode)opcode,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = rc->peer.addr;
		wr.wr.atomic.rkey = rc->peer.rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = rc->peer.addr + off;
		wr.wr.rdma.rkey = rc->peer.rkey;
	}
	return ibv_post_send(rc->qp, &wr, &bad);
}

/* The status of the next completion, or RC_NONE. */
static inline int rc_wait(struct rc *rc, struct ibv_wc *wc, int ms)
{
	uint64_t end = rc_ms() + (uint64_t)ms;

	for (;;) {
		int i, n = 0;

		for (i = 0; i < 100 && !n; i++)
			n = ibv_poll_cq(rc->cq, 1, wc);
		CHECK(n >= 0);
		if (n)
			return wc->status;
		if (rc_ms() >= end)
			return RC_NONE;
		usleep(50);
	}
}

/* Both ends in one process. */
static inline void rc_pair(struct rc *a, struct rc *b)
{
	struct rc_address at_a = rc_address(a), at_b = rc_address(b);

	rc_connect(a, &at_b);
	rc_connect(b, &at_a);
}

#endif
