// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Raw packets as a program sees them: rules, tags, counters, checksums, work
 * queues behind a hash; frames from process to process, and rules that vanish
 * with a process that is killed.
 */
#include <arpa/inet.h>
#include <signal.h>
#include <sys/wait.h>

#include "pair.h"

#define FRAME 128u

static int cases;

struct node {
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *buf; /* what is received; at FRAME: what is sent */
};

static struct ibv_cq_ex *new_cq_ex(struct end *e)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 64,
		.wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_QP_NUM |
			    IBV_WC_EX_WITH_FLOW_TAG,
	};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(e->ctx, &attr);

	CHECK(cq);
	return cq;
}

static void node_open(struct end *e, struct node *n)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_qp_init_attr_ex init = {
		.cap = {8, 8, 2, 2, 128},
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = e->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};

	n->cq = new_cq_ex(e);
	init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(n->cq);
	CHECK(n->qp = ibv_create_qp_ex(e->ctx, &init));
	n->buf = shared_memory(4096);
	CHECK(n->mr = ibv_reg_mr(e->pd, n->buf, 4096, ALL_ACCESS));
	CHECK(!ibv_modify_qp(n->qp, &attr, IBV_QP_STATE | IBV_QP_PORT));
	set_state(n->qp, IBV_QPS_RTR);
	set_state(n->qp, IBV_QPS_RTS);
}

static void node_close(struct node *n)
{
	CHECK(!ibv_destroy_qp(n->qp));
	CHECK(!ibv_dereg_mr(n->mr));
	CHECK(!ibv_destroy_cq(ibv_cq_ex_to_cq(n->cq)));
	munmap(n->buf, 4096);
}

/* UDP over IPv4 to @port, without checksums. */
static void build(uint8_t *f, uint16_t port, uint8_t last)
{
	static const uint8_t head[] = {
		0x02, 0,    0, 0,    0,	 1, 0x02,	0, 0,  0,    0,
		2,    0x08, 0, 0x45, 0,	 0, FRAME - 14, 0, 0,  0x40, 0,
		64,   17,   0, 0,    10, 0, 0,		1, 10, 0,    0,
		2,    0x10, 0, 0,    0,	 0, FRAME - 34, 0, 0,
	};
	uint32_t i;

	for (i = 0; i < FRAME; i++)
		f[i] = i;
	memcpy(f, head, sizeof(head));
	f[29] = last; /* of the source's address */
	f[36] = port >> 8;
	f[37] = port;
}

union rule {
	struct ibv_flow_attr attr;
	uint8_t bytes[512]; /* with its specs */
};

static union rule rule_new(void)
{
	return (union rule){.attr = {.type = IBV_FLOW_ATTR_NORMAL,
				     .size = sizeof(struct ibv_flow_attr),
				     .port = 1}};
}

static void rule_add(union rule *r, const void *spec, uint16_t size)
{
	memcpy(r->bytes + r->attr.size, spec, size);
	r->attr.size += size;
	r->attr.num_of_specs++;
}

static void rule_port(union rule *r, uint16_t port)
{
	struct ibv_flow_spec_tcp_udp spec = {
		.type = IBV_FLOW_SPEC_UDP,
		.size = sizeof(spec),
		.val = {.dst_port = htons(port)},
		.mask = {.dst_port = 0xffff},
	};

	rule_add(r, &spec, sizeof(spec));
}

static void rule_tag(union rule *r, uint32_t tag)
{
	struct ibv_flow_spec_action_tag spec = {IBV_FLOW_SPEC_ACTION_TAG,
						sizeof(spec), tag};

	rule_add(r, &spec, sizeof(spec));
}

static struct ibv_flow *steer(struct ibv_qp *qp, union rule *r)
{
	struct ibv_flow *flow = ibv_create_flow(qp, &r->attr);

	CHECK(flow);
	return flow;
}

static void recv_one(struct node *n, uint64_t id)
{
	struct ibv_sge sge = {(uintptr_t)n->buf, FRAME, n->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	CHECK(!ibv_post_recv(n->qp, &wr, &bad));
}

#define ANY UINT64_MAX

static void wait_wc(struct ibv_cq_ex *cq, enum ibv_wc_status status,
		    enum ibv_wc_opcode opcode, uint64_t id)
{
	struct ibv_poll_cq_attr attr = {};
	double end = seconds() + 10;

	while (ibv_start_poll(cq, &attr))
		CHECK(seconds() < end);
	CHECK(cq->status == status && (id == ANY || cq->wr_id == id));
	CHECK(ibv_wc_read_opcode(cq) == opcode);
}

static void send_frame(struct node *n, unsigned int flags)
{
	struct ibv_sge sge[] = {{(uintptr_t)n->buf + FRAME, 20, n->mr->lkey},
				{(uintptr_t)n->buf + FRAME + 20, FRAME - 20,
				 n->mr->lkey}};
	struct ibv_send_wr wr = {
		.wr_id = 77,
		.sg_list = sge,
		.num_sge = 2,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED | flags,
	};
	struct ibv_send_wr *bad;

	CHECK(!ibv_post_send(n->qp, &wr, &bad));
	wait_wc(n->cq, IBV_WC_SUCCESS, IBV_WC_SEND, 77);
	ibv_end_poll(n->cq);
}

static bool nothing(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr attr = {};

	return ibv_start_poll(cq, &attr) == ENOENT;
}

static void steered(struct end *e)
{
	struct ibv_flow *flow;
	union rule r = rule_new();
	struct node a, b;

	node_open(e, &a);
	node_open(e, &b);
	rule_port(&r, 5000);
	rule_tag(&r, 0x123456);
	flow = steer(b.qp, &r);
	recv_one(&b, 1);
	build(a.buf + FRAME, 5001, 1);
	send_frame(&a, 0);
	CHECK(nothing(b.cq));
	build(a.buf + FRAME, 5000, 1);
	send_frame(&a, IBV_SEND_IP_CSUM);
	wait_wc(b.cq, IBV_WC_SUCCESS, IBV_WC_RECV, 1);
	CHECK(ibv_wc_read_byte_len(b.cq) == FRAME);
	CHECK(ibv_wc_read_flow_tag(b.cq) == 0x123456);
	CHECK(ibv_wc_read_wc_flags(b.cq) == IBV_WC_IP_CSUM_OK);
	ibv_end_poll(b.cq);
	CHECK(!memcmp(b.buf, a.buf + FRAME, 24));
	CHECK(!memcmp(b.buf + 42, a.buf + FRAME + 42, FRAME - 42));
	CHECK(b.buf[24] || b.buf[25]); /* the checksum */

	recv_one(&b, 2);
	send_frame(&a, IBV_SEND_INLINE);
	wait_wc(b.cq, IBV_WC_SUCCESS, IBV_WC_RECV, 2);
	CHECK(!ibv_wc_read_wc_flags(b.cq));
	ibv_end_poll(b.cq);
	CHECK(!memcmp(b.buf, a.buf + FRAME, FRAME));
	CHECK(ibv_destroy_qp(b.qp) == EBUSY);
	CHECK(!ibv_destroy_flow(flow));
	node_close(&a);
	node_close(&b);
	cases++;
}

static void built_by_wr(struct end *e)
{
	union rule r = rule_new();
	struct ibv_qp_ex *qpx;
	struct ibv_flow *flow;
	struct node a;

	node_open(e, &a);
	flow = steer(a.qp, &r); /* everything, from itself, too */
	qpx = ibv_qp_to_qp_ex(a.qp);
	build(a.buf + FRAME, 5000, 1);
	recv_one(&a, 1);
	ibv_wr_start(qpx);
	qpx->wr_id = 7;
	qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(qpx);
	ibv_wr_set_inline_data(qpx, a.buf + FRAME, FRAME);
	CHECK(!ibv_wr_complete(qpx));
	wait_wc(a.cq, IBV_WC_SUCCESS, IBV_WC_RECV, 1);
	ibv_end_poll(a.cq);
	wait_wc(a.cq, IBV_WC_SUCCESS, IBV_WC_SEND, 7);
	ibv_end_poll(a.cq);
	CHECK(!memcmp(a.buf, a.buf + FRAME, FRAME));
	CHECK(!ibv_destroy_flow(flow));
	node_close(&a);
	cases++;
}

static void counted(struct end *e)
{
	struct ibv_counters_init_attr init = {};
	struct ibv_counter_attach_attr point = {IBV_COUNTER_BYTES, 2, 0};
	struct ibv_flow_spec_counter_action spec = {IBV_FLOW_SPEC_ACTION_COUNT,
						    sizeof(spec), NULL};
	struct ibv_flow_spec_action_drop drop = {IBV_FLOW_SPEC_ACTION_DROP,
						 sizeof(drop)};
	uint64_t value[3] = {9, 9, 9};
	union rule r = rule_new();
	struct ibv_flow *flow;
	struct node a;
	int i;

	node_open(e, &a);
	CHECK(spec.counters = ibv_create_counters(e->ctx, &init));
	CHECK(!ibv_attach_counters_point_flow(spec.counters, &point, NULL));
	point = (struct ibv_counter_attach_attr){IBV_COUNTER_PACKETS, 0, 0};
	CHECK(!ibv_attach_counters_point_flow(spec.counters, &point, NULL));
	CHECK(ibv_read_counters(spec.counters, value, 3, 0) == EINVAL);
	rule_add(&r, &spec, sizeof(spec));
	rule_add(&r, &drop, sizeof(drop));
	flow = steer(a.qp, &r);
	CHECK(ibv_attach_counters_point_flow(spec.counters, &point, flow) ==
	      EOPNOTSUPP);
	build(a.buf + FRAME, 1, 1);
	for (i = 0; i < 5; i++)
		send_frame(&a, 0);
	CHECK(ibv_read_counters(spec.counters, value, 2, 0) == EINVAL);
	CHECK(!ibv_read_counters(spec.counters, value, 3, 0));
	CHECK(value[0] == 5 && value[1] == 0 && value[2] == 5 * FRAME);
	CHECK(ibv_destroy_counters(spec.counters) == EBUSY);
	CHECK(!ibv_destroy_flow(flow));
	CHECK(!ibv_destroy_counters(spec.counters));
	node_close(&a);
	cases++;
}

static void refused(struct end *e)
{
	struct ibv_flow_spec_eth eth = {.type = IBV_FLOW_SPEC_ETH,
					.size = sizeof(eth)};
	union rule r = rule_new();
	struct node a;

	node_open(e, &a);
	r.attr.port = 9;
	CHECK(!ibv_create_flow(a.qp, &r.attr) && errno == EINVAL);
	r = rule_new();
	r.attr.flags = IBV_FLOW_ATTR_FLAGS_EGRESS;
	CHECK(!ibv_create_flow(a.qp, &r.attr) && errno == EOPNOTSUPP);
	r = rule_new();
	rule_add(&r, &eth, sizeof(eth));
	rule_add(&r, &eth, sizeof(eth));
	CHECK(!ibv_create_flow(a.qp, &r.attr) && errno == EINVAL);
	node_close(&a);
	cases++;
}

/* ---- work queues behind a hash --------------------------------------- */

#define QUEUES 4

static const uint8_t key[40] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
	0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
	0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
	0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

static struct ibv_wq *new_wq(struct end *e, struct ibv_cq_ex *cq)
{
	struct ibv_wq_init_attr init = {
		.wq_type = IBV_WQT_RQ,
		.max_wr = 64,
		.max_sge = 1,
		.pd = e->pd,
		.cq = ibv_cq_ex_to_cq(cq),
	};
	struct ibv_wq_attr attr = {.attr_mask = IBV_WQ_ATTR_STATE,
				   .wq_state = IBV_WQS_RDY};
	struct ibv_wq *wq = ibv_create_wq(e->ctx, &init);

	CHECK(wq && init.max_wr >= 64);
	CHECK(wq->state == IBV_WQS_RESET);
	CHECK(!ibv_modify_wq(wq, &attr));
	CHECK(wq->state == IBV_WQS_RDY);
	return wq;
}

static struct ibv_qp *new_hash_qp(struct end *e,
				  struct ibv_rwq_ind_table *table)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_RX_HASH |
			     IBV_QP_INIT_ATTR_IND_TABLE,
		.pd = e->pd,
		.rwq_ind_tbl = table,
		.rx_hash_conf = {IBV_RX_HASH_FUNC_TOEPLITZ, sizeof(key),
				 (uint8_t *)key,
				 IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4},
	};
	struct ibv_qp *qp;

	init.rx_hash_conf.rx_hash_key_len = 39;
	CHECK(!ibv_create_qp_ex(e->ctx, &init) && errno == EINVAL);
	init.rx_hash_conf.rx_hash_key_len = sizeof(key);
	CHECK(qp = ibv_create_qp_ex(e->ctx, &init));
	return qp;
}

static void wq_recv(struct ibv_wq *wq, struct node *n, uint64_t id)
{
	struct ibv_sge sge = {(uintptr_t)n->buf, FRAME, n->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	CHECK(!ibv_post_wq_recv(wq, &wr, &bad));
}

static void scaled(struct end *e)
{
	struct ibv_rwq_ind_table_init_attr init = {.log_ind_tbl_size = 2};
	struct ibv_wq_attr reset = {.attr_mask = IBV_WQ_ATTR_STATE,
				    .wq_state = IBV_WQS_RESET};
	struct ibv_rwq_ind_table *table;
	struct ibv_device_attr_ex dev;
	struct ibv_wq *wq[QUEUES];
	struct ibv_flow *flow;
	union rule r = rule_new();
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
	uint32_t got[QUEUES] = {}, i, n;
	struct node a;

	CHECK(!ibv_query_device_ex(e->ctx, NULL, &dev));
	CHECK(dev.rss_caps.supported_qpts & 1 << IBV_QPT_RAW_PACKET);
	CHECK(dev.rss_caps.rx_hash_function & IBV_RX_HASH_FUNC_TOEPLITZ);
	CHECK(dev.rss_caps.rx_hash_fields_mask & IBV_RX_HASH_SRC_IPV4);
	CHECK(dev.rss_caps.max_rwq_indirection_table_size >= QUEUES);
	CHECK(dev.max_wq_type_rq >= QUEUES);
	CHECK(dev.raw_packet_caps & IBV_RAW_PACKET_CAP_IP_CSUM);

	node_open(e, &a);
	cq = new_cq_ex(e);
	for (i = 0; i < QUEUES; i++)
		wq[i] = new_wq(e, cq);
	init.ind_tbl = wq;
	CHECK(table = ibv_create_rwq_ind_table(e->ctx, &init));
	qp = new_hash_qp(e, table);
	flow = steer(qp, &r);
	for (i = 0; i < 64; i++) {
		for (n = 0; n < QUEUES; n++)
			wq_recv(wq[n], &a, 100 * n + i);
		build(a.buf + FRAME, 1, i);
		send_frame(&a, 0);
		wait_wc(cq, IBV_WC_SUCCESS, IBV_WC_RECV, ANY);
		for (n = 0; wq[n]->wq_num != ibv_wc_read_qp_num(cq); n++)
			CHECK(n < QUEUES - 1);
		CHECK(cq->wr_id == 100 * n + got[n]++);
		ibv_end_poll(cq);
		CHECK(nothing(cq));
	}
	for (n = 0; n < QUEUES; n++)
		CHECK(got[n]);
	/* A reset queue has no receives, and takes new ones. */
	CHECK(!ibv_modify_wq(wq[0], &reset));
	for (i = 0; i < 64; i++)
		wq_recv(wq[0], &a, i);

	CHECK(ibv_destroy_wq(wq[0]) == EBUSY);
	CHECK(ibv_destroy_rwq_ind_table(table) == EBUSY);
	CHECK(!ibv_destroy_flow(flow));
	CHECK(!ibv_destroy_qp(qp));
	CHECK(!ibv_destroy_rwq_ind_table(table));
	for (i = 0; i < QUEUES; i++)
		CHECK(!ibv_destroy_wq(wq[i]));
	CHECK(!ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	node_close(&a);
	cases++;
}

/* ---- processes ------------------------------------------------------- */

static void child_receives(int ready, int ack)
{
	union rule r = rule_new();
	struct end e;
	struct node n;
	char byte = 1;

	end_open(&e);
	node_open(&e, &n);
	rule_port(&r, 6000);
	steer(n.qp, &r);
	recv_one(&n, 1);
	CHECK(write(ready, &byte, 1) == 1);
	wait_wc(n.cq, IBV_WC_SUCCESS, IBV_WC_RECV, 1);
	CHECK(n.buf[FRAME - 1] == FRAME - 1);
	CHECK(write(ack, &byte, 1) == 1);
	for (;;)
		pause();
}

/* Its rules are the first to be asked, and go with it. */
static void killed(struct end *e)
{
	int ready[2], ack[2], status;
	union rule r = rule_new();
	struct ibv_flow *flow;
	struct node a, b;
	double end;
	pid_t pid;
	char byte;

	CHECK(!pipe(ready) && !pipe(ack));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		child_receives(ready[1], ack[1]);
	node_open(e, &a);
	node_open(e, &b);
	r.attr.priority = 1;
	flow = steer(b.qp, &r);
	build(a.buf + FRAME, 6000, 1);
	CHECK(read(ready[0], &byte, 1) == 1);
	recv_one(&b, 5);
	send_frame(&a, 0);
	CHECK(read(ack[0], &byte, 1) == 1);
	CHECK(nothing(b.cq));
	CHECK(!kill(pid, SIGKILL));
	CHECK(waitpid(pid, &status, 0) == pid);
	for (end = seconds() + 20; nothing(b.cq); send_frame(&a, 0)) {
		CHECK(seconds() < end);
		usleep(1000);
	}
	CHECK(b.cq->wr_id == 5);
	ibv_end_poll(b.cq);
	CHECK(!ibv_destroy_flow(flow));
	node_close(&a);
	node_close(&b);
	cases++;
}

static void child_sends(int ready)
{
	struct end e;
	struct node n;
	char byte = 1;

	end_open(&e);
	node_open(&e, &n);
	build(n.buf + FRAME, 7000, 1);
	send_frame(&n, IBV_SEND_IP_CSUM);
	CHECK(write(ready, &byte, 1) == 1);
	for (;;)
		send_frame(&n, IBV_SEND_IP_CSUM);
}

/* Whole frames only, and then those of others. */
static void sender_killed(struct end *e)
{
	int ready[2], status, i, n;
	union rule r = rule_new();
	struct ibv_flow *flow;
	struct node a, b;
	double end;
	pid_t pid;
	char byte;

	CHECK(!pipe(ready));
	node_open(e, &a);
	node_open(e, &b);
	rule_port(&r, 7000);
	flow = steer(b.qp, &r);
	build(a.buf + FRAME, 7000, 2);
	for (i = 0; i < 30; i++) {
		pid = fork();
		CHECK(pid >= 0);
		if (!pid)
			child_sends(ready[1]);
		CHECK(read(ready[0], &byte, 1) == 1);
		for (n = 0; n < 20 * i; n++) {
			recv_one(&b, n);
			wait_wc(b.cq, IBV_WC_SUCCESS, IBV_WC_RECV, n);
			CHECK(ibv_wc_read_wc_flags(b.cq) == IBV_WC_IP_CSUM_OK);
			ibv_end_poll(b.cq);
		}
		recv_one(&b, ANY);
		CHECK(!kill(pid, SIGKILL));
		CHECK(waitpid(pid, &status, 0) == pid);
		/* Perhaps it is one of his. */
		end = seconds() + 20;
		do {
			CHECK(seconds() < end);
			send_frame(&a, IBV_SEND_IP_CSUM);
		} while (nothing(b.cq));
		CHECK(b.cq->status == IBV_WC_SUCCESS && b.cq->wr_id == ANY);
		ibv_end_poll(b.cq);
	}
	CHECK(!ibv_destroy_flow(flow));
	node_close(&a);
	node_close(&b);
	cases++;
}

int main(void)
{
	struct end e;

	end_open(&e);
	steered(&e);
	built_by_wr(&e);
	counted(&e);
	refused(&e);
	scaled(&e);
	killed(&e);
	sender_killed(&e);
	end_close(&e);
	printf("%d cases, all right\n", cases);
	return 0;
}
