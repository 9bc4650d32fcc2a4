// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Shared receive queues as a program sees them: many queue pairs, whose peers
 * are processes of their own, take from one queue; limit and last-WQE events;
 * nothing is lost with a queue pair that goes.
 */
#include <sched.h>
#include <sys/wait.h>

#include "pair.h"

#define CLIENTS 4
#define QPS 3	      /* of each client */
#define MESSAGES 3000 /* of each QP */
#define DEPTH 64
#define ALL (CLIENTS * QPS)

static int cases;

struct mailbox {
	uint32_t server[ALL], client[ALL];
	int ready, go;
};

static struct ibv_srq *new_srq(struct end *e, uint32_t depth)
{
	struct ibv_srq_init_attr init = {
		.attr = {.max_wr = depth, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(e->pd, &init);

	CHECK(srq);
	return srq;
}

static struct ibv_qp *new_srq_qp(struct end *e, struct ibv_cq *cq,
				 struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.srq = srq,
		.cap = {4, 0, 1, 0, 64},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = ibv_create_qp(e->pd, &init);

	CHECK(qp);
	return qp;
}

static int post(struct ibv_srq *srq, struct ibv_mr *mr, uint64_t id)
{
	struct ibv_sge sge = {(uintptr_t)mr->addr + id * 64, 64, mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	return ibv_post_srq_recv(srq, &wr, &bad);
}

static void send(struct ibv_qp *qp, uint64_t value)
{
	struct ibv_sge sge = {(uintptr_t)&value, 8, 0};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE,
	};
	struct ibv_send_wr *bad;

	CHECK(!ibv_post_send(qp, &wr, &bad));
}

static void wait_wc(struct ibv_cq *cq, struct ibv_wc *wc)
{
	double end = seconds() + 20;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, wc))) {
		CHECK(seconds() < end);
		sched_yield();
	}
	CHECK(n == 1 && wc->status == IBV_WC_SUCCESS);
}

/* ---- many senders ---------------------------------------------------- */

static void client(struct mailbox *box, int number)
{
	struct ibv_cq *cq;
	struct ibv_qp *qp[QPS];
	struct ibv_wc wc;
	struct end e;
	int i, n;

	end_open(&e);
	cq = new_cq(&e, QPS, NULL);
	for (i = 0; i < QPS; i++) {
		qp[i] = new_qp(&e, cq, cq, 1);
		STORE(box->client[number * QPS + i], qp[i]->qp_num);
	}
	ADD(box->ready, 1);
	while (!LOAD(box->go))
		usleep(1000);
	for (i = 0; i < QPS; i++)
		connect_qp(&e, qp[i], box->server[number * QPS + i]);
	for (n = 0; n < MESSAGES; n++) {
		for (i = 0; i < QPS; i++)
			send(qp[i], (uint64_t)(number * QPS + i) << 32 | n);
		for (i = 0; i < QPS; i++)
			wait_wc(cq, &wc);
	}
	for (i = 0; i < QPS; i++)
		CHECK(!ibv_destroy_qp(qp[i]));
	CHECK(!ibv_destroy_cq(cq));
	end_close(&e);
	_exit(0);
}

static void serve(struct end *e, struct mailbox *box, struct ibv_srq *srq,
		  struct ibv_cq *cq, struct ibv_qp **qp, struct ibv_mr *mr)
{
	struct ibv_srq_attr attr = {.max_wr = DEPTH};
	uint32_t seen[ALL] = {0};
	struct ibv_wc wc;
	uint64_t value;
	int i;

	while (LOAD(box->ready) < CLIENTS)
		usleep(1000);
	for (i = 0; i < ALL; i++)
		connect_qp(e, qp[i], box->client[i]);
	STORE(box->go, 1);
	/* Far fewer receives than senders want: some find none. */
	for (i = 0; i < 4; i++)
		CHECK(!post(srq, mr, i));
	for (i = 0; i < ALL * MESSAGES; i++) {
		wait_wc(cq, &wc);
		memcpy(&value, (char *)mr->addr + wc.wr_id * 64, 8);
		CHECK(value >> 32 < ALL);
		CHECK(wc.qp_num == qp[value >> 32]->qp_num);
		CHECK((uint32_t)value == seen[value >> 32]++);
		CHECK(!post(srq, mr, wc.wr_id));
		if (i % 100)
			continue;
		/* At times with a receive in use, at times with none. */
		attr.max_wr = i / 100 % 2 ? 4 : DEPTH << i / 100 % 4;
		CHECK(!ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR));
	}
}

static void many_senders_one_queue(void)
{
	struct mailbox *box = shared_memory(sizeof(*box));
	struct ibv_qp *qp[ALL];
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	struct end e;
	int i, status;

	for (i = 0; i < CLIENTS; i++)
		if (!fork())
			client(box, i);
	end_open(&e);
	cq = new_cq(&e, 256, NULL);
	srq = new_srq(&e, DEPTH);
	CHECK(mr = ibv_reg_mr(e.pd, shared_memory(4096), 4096, ALL_ACCESS));
	for (i = 0; i < ALL; i++) {
		qp[i] = new_srq_qp(&e, cq, srq);
		box->server[i] = qp[i]->qp_num;
	}
	serve(&e, box, srq, cq, qp, mr);
	for (i = 0; i < CLIENTS; i++) {
		CHECK(wait(&status) > 0);
		CHECK(status == 0);
	}
	CHECK(ibv_destroy_srq(srq) == EBUSY);
	for (i = 0; i < ALL; i++)
		CHECK(!ibv_destroy_qp(qp[i]));
	CHECK(!ibv_destroy_srq(srq));
	CHECK(!ibv_destroy_cq(cq));
	CHECK(!ibv_dereg_mr(mr));
	end_close(&e);
	cases++;
}

/* ---- events ---------------------------------------------------------- */

struct rig {
	struct end e;
	struct ibv_cq *acq, *bcq;
	struct ibv_srq *srq;
	struct ibv_qp *a, *b;
	struct ibv_mr *mr;
};

static void rig_open(struct rig *g)
{
	end_open(&g->e);
	g->acq = new_cq(&g->e, 16, NULL);
	g->bcq = new_cq(&g->e, 16, NULL);
	g->srq = new_srq(&g->e, 8);
	g->a = new_qp(&g->e, g->acq, g->acq, 8);
	g->b = new_srq_qp(&g->e, g->bcq, g->srq);
	CHECK(g->mr = ibv_reg_mr(g->e.pd, shared_memory(4096), 4096,
				 ALL_ACCESS));
	connect_qp(&g->e, g->a, g->b->qp_num);
	connect_qp(&g->e, g->b, g->a->qp_num);
}

static void rig_close(struct rig *g)
{
	if (g->b)
		CHECK(!ibv_destroy_qp(g->b));
	CHECK(!ibv_destroy_qp(g->a));
	CHECK(!ibv_destroy_srq(g->srq));
	CHECK(!ibv_destroy_cq(g->acq));
	CHECK(!ibv_destroy_cq(g->bcq));
	CHECK(!ibv_dereg_mr(g->mr));
	end_close(&g->e);
	cases++;
}

static void limit_event(void)
{
	struct ibv_srq_attr attr = {.srq_limit = 3};
	struct ibv_async_event event;
	struct ibv_wc wc;
	struct rig g;
	int i;

	rig_open(&g);
	for (i = 0; i < 4; i++)
		CHECK(!post(g.srq, g.mr, i));
	CHECK(!ibv_modify_srq(g.srq, &attr, IBV_SRQ_LIMIT));
	CHECK(!ibv_query_srq(g.srq, &attr));
	CHECK(attr.srq_limit == 3 && attr.max_wr == 8 && attr.max_sge >= 1);
	attr.srq_limit = 9;
	CHECK(ibv_modify_srq(g.srq, &attr, IBV_SRQ_LIMIT) == EINVAL);
	for (i = 0; i < 2; i++) {
		send(g.a, 1);
		wait_wc(g.acq, &wc);
	}
	CHECK(!ibv_get_async_event(g.e.ctx, &event));
	CHECK(event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED);
	CHECK(event.element.srq == g.srq);
	ibv_ack_async_event(&event);
	CHECK(!ibv_query_srq(g.srq, &attr));
	CHECK(attr.srq_limit == 0);
	/* One that nobody has read does not hold up the end. */
	attr.srq_limit = 8;
	CHECK(!ibv_modify_srq(g.srq, &attr, IBV_SRQ_LIMIT));
	rig_close(&g);
}

static void another_depth(void)
{
	struct ibv_srq_attr attr = {.max_wr = 17};
	struct ibv_wc wc;
	struct rig g;
	int i;

	rig_open(&g);
	for (i = 0; i < 8; i++)
		CHECK(!post(g.srq, g.mr, i));
	CHECK(post(g.srq, g.mr, 8) == ENOMEM);
	CHECK(!ibv_modify_srq(g.srq, &attr, IBV_SRQ_MAX_WR));
	CHECK(!ibv_query_srq(g.srq, &attr));
	CHECK(attr.max_wr == 32);
	for (; i < 32; i++)
		CHECK(!post(g.srq, g.mr, i));
	CHECK(post(g.srq, g.mr, 32) == ENOMEM);
	/* More are posted than it would hold. */
	attr.max_wr = 16;
	CHECK(ibv_modify_srq(g.srq, &attr, IBV_SRQ_MAX_WR) == EINVAL);
	for (i = 0; i < 28; i++) {
		send(g.a, i);
		wait_wc(g.acq, &wc);
		wait_wc(g.bcq, &wc);
		CHECK((int)wc.wr_id == i);
	}
	attr.max_wr = 4;
	attr.srq_limit = 5;
	CHECK(ibv_modify_srq(g.srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT) ==
	      EINVAL);
	attr.srq_limit = 1;
	CHECK(!ibv_modify_srq(g.srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT));
	CHECK(!ibv_query_srq(g.srq, &attr));
	CHECK(attr.max_wr == 4 && attr.srq_limit == 1);
	CHECK(post(g.srq, g.mr, 32) == ENOMEM);
	for (; i < 32; i++) {
		send(g.a, i);
		wait_wc(g.acq, &wc);
		wait_wc(g.bcq, &wc);
		CHECK((int)wc.wr_id == i);
	}
	attr.max_wr = 0;
	CHECK(ibv_modify_srq(g.srq, &attr, IBV_SRQ_MAX_WR) == EINVAL);
	rig_close(&g);
}

static void last_wqe_event(void)
{
	struct ibv_async_event event;
	struct rig g;

	rig_open(&g);
	CHECK(!post(g.srq, g.mr, 0));
	set_state(g.b, IBV_QPS_ERR);
	CHECK(!ibv_get_async_event(g.e.ctx, &event));
	CHECK(event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED);
	CHECK(event.element.qp == g.b);
	ibv_ack_async_event(&event);
	rig_close(&g);
}

/* As many as there are, again and again, whatever happens to the QP. */
static void receives_come_back(void)
{
	struct ibv_wc wc;
	struct rig g;
	int round, i;

	rig_open(&g);
	for (round = 0; round < 20; round++) {
		if (!round)
			for (i = 0; i < 8; i++)
				CHECK(!post(g.srq, g.mr, i));
		CHECK(post(g.srq, g.mr, 8) == ENOMEM);
		for (i = 0; i < 3; i++) {
			send(g.a, 1);
			wait_wc(g.acq, &wc);
		}
		CHECK(!ibv_destroy_qp(g.b)); /* three CQEs were not polled */
		CHECK(!ibv_poll_cq(g.bcq, 1, &wc));
		for (i = 0; i < 3; i++)
			CHECK(!post(g.srq, g.mr, i));
		g.b = new_srq_qp(&g.e, g.bcq, g.srq);
		set_state(g.a, IBV_QPS_RESET);
		connect_qp(&g.e, g.a, g.b->qp_num);
		connect_qp(&g.e, g.b, g.a->qp_num);
	}
	rig_close(&g);
}

int main(void)
{
	many_senders_one_queue();
	limit_event();
	another_depth();
	last_wqe_event();
	receives_come_back();
	printf("%d cases, all right\n", cases);
	return 0;
}
