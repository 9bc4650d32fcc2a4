/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Smallest, largest and odd: limits, self-connected queue pairs, strangers,
 * every state.  edges [CASE]
 */
#include "pair.h"

static struct end end;
static struct ibv_cq *cq;

static struct ibv_wc wait_wc(double limit)
{
	double until = seconds() + limit;
	struct ibv_wc wc;
	int n;

	do {
		n = ibv_poll_cq(cq, 1, &wc);
		CHECK(n >= 0);
	} while (!n && seconds() < until);
	CHECK(n);
	return wc;
}

static void wait_ok(uint64_t wr_id)
{
	struct ibv_wc wc = wait_wc(30);

	CHECK(wc.status == IBV_WC_SUCCESS);
	CHECK(wc.wr_id == wr_id);
}

static int post(struct ibv_qp *qp, uint64_t wr_id, int opcode,
		struct ibv_sge *sge, unsigned int flags, struct ibv_mr *target)
{
	struct ibv_send_wr wr =
				   {
					   .wr_id = wr_id,
					   .sg_list = sge,
					   .num_sge = !!sge,
					   .opcode = opcode,
					   .send_flags = flags,
				   },
			   *bad = NULL;
	int err;

	if (target) {
		wr.wr.rdma.remote_addr = (uintptr_t)target->addr;
		wr.wr.rdma.rkey = target->rkey;
	}
	err = ibv_post_send(qp, &wr, &bad);
	CHECK(!err || bad == &wr);
	return err;
}

static int recv_empty(struct ibv_qp *qp, uint64_t wr_id)
{
	struct ibv_recv_wr wr = {.wr_id = wr_id}, *bad = NULL;
	int err = ibv_post_recv(qp, &wr, &bad);

	CHECK(!err || bad == &wr);
	return err;
}

static void begin(int cqe)
{
	end_open(&end);
	cq = new_cq(&end, cqe, NULL);
}

static void finish(void)
{
	struct ibv_wc wc;

	CHECK(!ibv_poll_cq(cq, 1, &wc));
	CHECK(!ibv_destroy_cq(cq));
	end_close(&end);
}

static struct ibv_qp *self(uint32_t depth)
{
	struct ibv_qp *qp = new_qp(&end, cq, cq, depth);

	connect_qp(&end, qp, qp->qp_num);
	return qp;
}

/* ---- sizes --------------------------------------------------------------- */

/* A queue of @depth takes so many, not one more, several times around. */
static void depth(uint32_t n)
{
	struct ibv_qp *qp = self(n);
	uint32_t round, i;

	for (round = 0; round < 3; round++) {
		for (i = 0; i < n; i++)
			CHECK(!recv_empty(qp, UINT64_MAX - i));
		CHECK(recv_empty(qp, 0) == ENOMEM);
		for (i = 0; i < n; i++)
			CHECK(!post(qp, i, IBV_WR_SEND, NULL, IBV_SEND_SIGNALED,
				    NULL));
		CHECK(post(qp, 0, IBV_WR_SEND, NULL, 0, NULL) == ENOMEM);
		for (i = 0; i < n; i++) {
			wait_ok(UINT64_MAX - i);
			wait_ok(i);
		}
	}
	CHECK(!ibv_destroy_qp(qp));
}

static void depths(void)
{
	begin(1 << 16);
	depth(1);
	depth(2);
	depth(1 << 15);
	finish();
}

static void create_fails(struct ibv_qp_cap cap)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = cap,
		.qp_type = IBV_QPT_RC,
	};

	errno = 0;
	CHECK(!ibv_create_qp(end.pd, &init) && errno == EINVAL);
}

static void limits(void)
{
	struct ibv_device_attr attr;
	struct ibv_wc wc;
	struct ibv_cq *large;

	begin(1);
	CHECK(!ibv_query_device(end.ctx, &attr));
	create_fails((struct ibv_qp_cap){attr.max_qp_wr + 1, 1, 1, 1, 0});
	create_fails((struct ibv_qp_cap){1, attr.max_qp_wr + 1, 1, 1, 0});
	create_fails((struct ibv_qp_cap){1, 1, attr.max_sge + 1, 1, 0});
	create_fails((struct ibv_qp_cap){1, 1, 1, 32, 0});
	create_fails((struct ibv_qp_cap){1, 1, 1, 1, 481});
	create_fails((struct ibv_qp_cap){1, 1, 1, 1, ~0u});
	create_fails((struct ibv_qp_cap){~0u, ~0u, ~0u, ~0u, 0});
	large = new_cq(&end, attr.max_cqe, NULL);
	CHECK(large->cqe >= attr.max_cqe);
	CHECK(!ibv_poll_cq(large, 1, &wc));
	CHECK(!ibv_poll_cq(large, 0, &wc));
	CHECK(ibv_poll_cq(large, -1, &wc) <= 0);
	CHECK(!ibv_destroy_cq(large));
	errno = 0;
	CHECK(!ibv_create_cq(end.ctx, attr.max_cqe + 1, NULL, NULL, 0));
	CHECK(errno == EINVAL);
	errno = 0;
	CHECK(!ibv_create_cq(end.ctx, 1, NULL, NULL, 1 << 20));
	CHECK(errno == EINVAL);
	CHECK(ibv_resize_cq(cq, attr.max_cqe + 1) == EINVAL);
	CHECK(ibv_resize_cq(cq, 0) == EINVAL);
	finish();
}

/* The whole slot: 480 bytes of inline data, 30 pieces of a gather list. */
static void full_slots(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = NULL,
		.cap = {4, 4, 30, 31, 480},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	struct ibv_recv_wr recv = {.num_sge = 32}, *bad_recv;
	struct ibv_sge sge[32];
	uint8_t from[512], to[512];
	struct ibv_mr *mf, *mt;
	struct ibv_qp *qp;
	int i, len;

	begin(16);
	init.send_cq = init.recv_cq = cq;
	CHECK(qp = ibv_create_qp(end.pd, &init));
	connect_qp(&end, qp, qp->qp_num);
	CHECK(mf = ibv_reg_mr(end.pd, from, sizeof(from), ALL_ACCESS));
	CHECK(mt = ibv_reg_mr(end.pd, to, sizeof(to), ALL_ACCESS));
	wr.sg_list = sge;
	wr.wr.rdma.remote_addr = (uintptr_t)to;
	wr.wr.rdma.rkey = mt->rkey;
	for (len = 0; len <= 480; len++) {
		memset(from, len, sizeof(from));
		memset(to, ~len, sizeof(to));
		sge[0] = (struct ibv_sge){(uintptr_t)from, len, 0};
		wr.num_sge = 1;
		wr.send_flags |= IBV_SEND_INLINE;
		CHECK(!ibv_post_send(qp, &wr, &bad));
		wait_ok(0);
		CHECK(!memcmp(from, to, len));
		CHECK(to[len] == (uint8_t)~len);
	}
	sge[0].length = 481;
	CHECK(ibv_post_send(qp, &wr, &bad) == EINVAL && bad == &wr);
	/* Lengths whose sum wraps. */
	sge[0].length = sge[1].length = 0x80000000u;
	wr.num_sge = 2;
	CHECK(ibv_post_send(qp, &wr, &bad) == EINVAL && bad == &wr);
	wr.send_flags &= ~IBV_SEND_INLINE;
	for (i = 0; i < 32; i++)
		sge[i] = (struct ibv_sge){(uintptr_t)&from[i * 3], i % 4,
					  mf->lkey};
	for (i = 0; i < 512; i++)
		from[i] = i;
	wr.num_sge = 30;
	memset(to, 0xee, sizeof(to));
	CHECK(!ibv_post_send(qp, &wr, &bad));
	wait_ok(0);
	for (i = 0, len = 0; i < 30; i++) {
		CHECK(!memcmp(&to[len], &from[i * 3], i % 4));
		len += i % 4;
	}
	CHECK(to[len] == 0xee);
	wr.num_sge = 31;
	CHECK(ibv_post_send(qp, &wr, &bad) == EINVAL && bad == &wr);
	recv.sg_list = sge;
	CHECK(ibv_post_recv(qp, &recv, &bad_recv) == EINVAL);
	CHECK(bad_recv == &recv);
	CHECK(!ibv_destroy_qp(qp));
	CHECK(!ibv_dereg_mr(mf));
	CHECK(!ibv_dereg_mr(mt));
	finish();
}

/* More than a lock is held for, by one byte; with @size near 1 GiB, too. */
static void long_message(size_t size)
{
	uint8_t *from =
		mmap(NULL, size, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint8_t *to = mmap(NULL, size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct ibv_sge sge = {(uintptr_t)from, size, 0};
	struct ibv_recv_wr recv = {.wr_id = 9, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;
	struct ibv_mr *mf, *mt;
	struct ibv_qp *qp;
	size_t i;

	CHECK(from != MAP_FAILED && to != MAP_FAILED);
	begin(16);
	for (i = 0; i < size; i += 4093)
		from[i] = i / 4093;
	from[size - 1] = 77;
	CHECK(mf = ibv_reg_mr(end.pd, from, size, ALL_ACCESS));
	CHECK(mt = ibv_reg_mr(end.pd, to, size, ALL_ACCESS));
	qp = self(4);
	sge.lkey = mf->lkey;
	CHECK(!post(qp, 1, IBV_WR_RDMA_WRITE, &sge, IBV_SEND_SIGNALED, mt));
	wait_ok(1);
	CHECK(!memcmp(from, to, size));
	memset(to, 0, size);
	sge.addr = (uintptr_t)to;
	sge.lkey = mt->lkey;
	CHECK(!post(qp, 2, IBV_WR_RDMA_READ, &sge, IBV_SEND_SIGNALED, mf));
	wait_ok(2);
	CHECK(!memcmp(from, to, size));
	to[size - 1] = 0;
	CHECK(!ibv_post_recv(qp, &recv, &bad));
	sge.addr = (uintptr_t)from;
	sge.lkey = mf->lkey;
	CHECK(!post(qp, 3, IBV_WR_SEND, &sge, IBV_SEND_SIGNALED, NULL));
	wait_ok(9);
	wait_ok(3);
	CHECK(to[size - 1] == 77);
	CHECK(!ibv_destroy_qp(qp));
	CHECK(!ibv_dereg_mr(mf));
	CHECK(!ibv_dereg_mr(mt));
	finish();
	munmap(from, size);
	munmap(to, size);
}

static void long_messages(void)
{
	long_message((1 << 20) - 1);
	long_message(1 << 20);
	long_message((1 << 20) + 1);
	long_message((16 << 20) + 1);
	if (getenv("SF_TEST_LONG") && *getenv("SF_TEST_LONG") == '1')
		long_message((1u << 30) + 1);
}

/* ---- receives that are not there ------------------------------------------
 */

/* From RESET: @rnr_retry and what the responder asks for. */
static void connect_rnr(struct ibv_qp *qp, int rnr_retry, int timer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.min_rnr_timer = timer,
		.sq_psn = 0xfffff0,
		.retry_cnt = 1,
		.rnr_retry = rnr_retry,
		.max_rd_atomic = 1,
	};

	set_state(qp, IBV_QPS_RESET);
	to_init(qp);
	to_rtr(&end, qp, qp->qp_num);
	CHECK(!ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				     IBV_QP_MIN_RNR_TIMER |
				     IBV_QP_MAX_QP_RD_ATOMIC));
}

static void not_ready(void)
{
	size_t size = (3 << 20) + 1;
	uint8_t *buf = malloc(2 * size);
	struct ibv_sge sge = {(uintptr_t)buf, size, 0};
	struct ibv_mr *mr, *target;
	struct ibv_qp *qp;
	struct ibv_wc wc;
	int i;

	CHECK(buf);
	memset(buf, 1, 2 * size);
	begin(16);
	CHECK(mr = ibv_reg_mr(end.pd, buf, size, ALL_ACCESS));
	CHECK(target = ibv_reg_mr(end.pd, buf + size, size, ALL_ACCESS));
	sge.lkey = mr->lkey;
	qp = self(4);
	/* Late is not too late: for ever, and by the longest timer, 655 ms. */
	for (i = 0; i < 2; i++) {
		connect_rnr(qp, 7, i ? 0 : 1);
		CHECK(!post(qp, 1, IBV_WR_SEND, NULL, IBV_SEND_SIGNALED, NULL));
		usleep(20000);
		CHECK(!ibv_poll_cq(cq, 1, &wc));
		CHECK(!recv_empty(qp, 2));
		wait_ok(2);
		wait_ok(1);
	}
	/* Not for ever, whatever the length. */
	for (i = 0; i < 3; i++) {
		connect_rnr(qp, i, 1);
		CHECK(!post(qp, 3, IBV_WR_RDMA_WRITE_WITH_IMM, &sge,
			    IBV_SEND_SIGNALED, target));
		wc = wait_wc(10);
		CHECK(wc.status == IBV_WC_RNR_RETRY_EXC_ERR && wc.wr_id == 3);
		connect_rnr(qp, i, 1);
		CHECK(!post(qp, 4, IBV_WR_SEND, &sge, IBV_SEND_SIGNALED, NULL));
		wc = wait_wc(10);
		CHECK(wc.status == IBV_WC_RNR_RETRY_EXC_ERR && wc.wr_id == 4);
	}
	CHECK(!ibv_destroy_qp(qp));
	CHECK(!ibv_dereg_mr(mr));
	CHECK(!ibv_dereg_mr(target));
	finish();
	free(buf);
}

/* ---- whom one listens to ---------------------------------------------------
 */

static void strangers(void)
{
	uint8_t buf[64] = {1};
	struct ibv_sge sge = {(uintptr_t)buf, 8, 0};
	struct ibv_qp *a, *b, *c;
	struct ibv_mr *mr;
	struct ibv_wc wc;

	begin(64);
	a = new_qp(&end, cq, cq, 4);
	b = new_qp(&end, cq, cq, 4);
	c = new_qp(&end, cq, cq, 4);
	CHECK(mr = ibv_reg_mr(end.pd, buf + 8, 8, ALL_ACCESS));
	connect_qp(&end, a, b->qp_num);
	connect_qp(&end, b, a->qp_num);
	/* Points to one who points elsewhere: no answer, nothing touched. */
	to_init(c);
	to_rtr(&end, c, b->qp_num);
	to_rts(c);
	CHECK(!post(c, 1, IBV_WR_RDMA_WRITE, &sge,
		    IBV_SEND_SIGNALED | IBV_SEND_INLINE, mr));
	wc = wait_wc(30);
	CHECK(wc.status == IBV_WC_RETRY_EXC_ERR && !buf[8]);
	/* The two do not notice. */
	CHECK(!post(a, 2, IBV_WR_RDMA_WRITE, &sge,
		    IBV_SEND_SIGNALED | IBV_SEND_INLINE, mr));
	wait_ok(2);
	CHECK(buf[8] == 1);
	/* A peer that is gone; one that was reset; the number of another. */
	CHECK(!ibv_destroy_qp(b));
	CHECK(!post(a, 3, IBV_WR_RDMA_WRITE, &sge,
		    IBV_SEND_SIGNALED | IBV_SEND_INLINE, mr));
	wc = wait_wc(30);
	CHECK(wc.status == IBV_WC_RETRY_EXC_ERR && wc.wr_id == 3);
	CHECK(!ibv_destroy_qp(a));
	CHECK(!ibv_destroy_qp(c));
	CHECK(!ibv_dereg_mr(mr));
	finish();
}

/* ---- states ----------------------------------------------------------------
 */

static enum ibv_qp_state state(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(!ibv_query_qp(qp, &attr, IBV_QP_STATE | IBV_QP_CAP, &init));
	CHECK(attr.cap.max_send_wr == init.cap.max_send_wr);
	CHECK(init.send_cq == cq && init.recv_cq == cq);
	CHECK(init.qp_type == IBV_QPT_RC);
	return attr.qp_state;
}

static int modify(struct ibv_qp *qp, enum ibv_qp_state to, int mask)
{
	struct ibv_qp_attr attr = {
		.qp_state = to,
		.port_num = 1,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qp->qp_num,
		.ah_attr = {.port_num = 1, .dlid = end.port.lid},
	};

	return ibv_modify_qp(qp, &attr, mask | IBV_QP_STATE);
}

static void states(void)
{
	struct ibv_qp_attr attr;
	struct ibv_qp *qp;
	struct ibv_wc wc;
	int i;

	begin(64);
	qp = new_qp(&end, cq, cq, 8);
	CHECK(state(qp) == IBV_QPS_RESET);
	CHECK(post(qp, 0, IBV_WR_SEND, NULL, 0, NULL) == EINVAL);
	CHECK(recv_empty(qp, 0) == EINVAL);
	CHECK(modify(qp, IBV_QPS_RTR, 0) == EINVAL);
	CHECK(modify(qp, IBV_QPS_RTS, 0) == EINVAL);
	CHECK(modify(qp, IBV_QPS_SQD, 0) == EINVAL);
	CHECK(modify(qp, IBV_QPS_INIT, 0) == EINVAL); /* attributes missing */
	CHECK(modify(qp, IBV_QPS_INIT,
		     IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS |
			     IBV_QP_TIMEOUT) == EINVAL); /* one too many */
	CHECK(state(qp) == IBV_QPS_RESET);
	to_init(qp);
	CHECK(state(qp) == IBV_QPS_INIT);
	CHECK(post(qp, 0, IBV_WR_SEND, NULL, 0, NULL) == EINVAL);
	CHECK(!recv_empty(qp, 10));
	CHECK(modify(qp, IBV_QPS_RTS, 0) == EINVAL);
	CHECK(modify(qp, IBV_QPS_RTR, IBV_QP_AV) == EINVAL);
	to_init(qp); /* once more is allowed */
	to_rtr(&end, qp, qp->qp_num);
	CHECK(state(qp) == IBV_QPS_RTR);
	CHECK(modify(qp, IBV_QPS_RTR, 0) == EINVAL);
	CHECK(modify(qp, IBV_QPS_INIT, 0) == EINVAL);
	to_rts(qp);
	CHECK(state(qp) == IBV_QPS_RTS);
	CHECK(!ibv_query_qp(qp, &attr, IBV_QP_RATE_LIMIT - 1,
			    &(struct ibv_qp_init_attr){0}));
	CHECK(attr.dest_qp_num == qp->qp_num && attr.timeout == 14 &&
	      attr.retry_cnt == 7 && attr.rnr_retry == 7 &&
	      attr.path_mtu == IBV_MTU_1024 && attr.port_num == 1 &&
	      attr.max_rd_atomic == 16 && attr.max_dest_rd_atomic == 16 &&
	      attr.min_rnr_timer == 1 && attr.qp_access_flags == 14);
	CHECK(!post(qp, 11, IBV_WR_SEND, NULL, IBV_SEND_SIGNALED, NULL));
	wait_ok(10);
	wait_ok(11);
	/* Drained: what is posted waits for RTS. */
	set_state(qp, IBV_QPS_SQD);
	CHECK(state(qp) == IBV_QPS_SQD);
	CHECK(!recv_empty(qp, 12));
	CHECK(!post(qp, 13, IBV_WR_SEND, NULL, IBV_SEND_SIGNALED, NULL));
	usleep(10000);
	CHECK(!ibv_poll_cq(cq, 1, &wc));
	set_state(qp, IBV_QPS_RTS);
	wait_ok(12);
	wait_ok(13);
	/* Receives wait, then the error flushes them; later ones at once. */
	for (i = 0; i < 4; i++)
		CHECK(!recv_empty(qp, 20 + i));
	set_state(qp, IBV_QPS_ERR);
	CHECK(state(qp) == IBV_QPS_ERR);
	for (i = 0; i < 5; i++) {
		if (i == 4)
			CHECK(!recv_empty(qp, 24));
		wc = wait_wc(10);
		CHECK(wc.status == IBV_WC_WR_FLUSH_ERR);
		CHECK(wc.wr_id == 20u + i);
	}
	CHECK(!post(qp, 25, IBV_WR_SEND, NULL, 0, NULL));
	wc = wait_wc(10);
	CHECK(wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == 25);
	CHECK(modify(qp, IBV_QPS_RTS, 0) == EINVAL);
	/* A new life does not see the old one's CQEs. */
	CHECK(!recv_empty(qp, 26));
	set_state(qp, IBV_QPS_RESET);
	CHECK(state(qp) == IBV_QPS_RESET);
	CHECK(!ibv_poll_cq(cq, 1, &wc));
	connect_qp(&end, qp, qp->qp_num);
	CHECK(!recv_empty(qp, 30));
	CHECK(!post(qp, 31, IBV_WR_SEND, NULL, IBV_SEND_SIGNALED, NULL));
	wait_ok(30);
	wait_ok(31);
	CHECK(!ibv_destroy_qp(qp));
	finish();
}

static void wrong_values(void)
{
	int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
		  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		  IBV_QP_MIN_RNR_TIMER;
	struct ibv_qp_attr good =
				   {
					   .qp_state = IBV_QPS_RTR,
					   .path_mtu = IBV_MTU_1024,
					   .ah_attr = {.port_num = 1,
						       .dlid = 1},
				   },
			   bad;
	struct ibv_qp *qp;

	begin(4);
	if (end.port.link_layer == IBV_LINK_LAYER_ETHERNET) {
		good.ah_attr.is_global = 1;
		good.ah_attr.grh.dgid = end.gid;
	}
	qp = new_qp(&end, cq, cq, 4);
	to_init(qp);
#define WRONG(member, value)                                   \
	do {                                                   \
		bad = good;                                    \
		bad.member = value;                            \
		CHECK(ibv_modify_qp(qp, &bad, rtr) == EINVAL); \
	} while (0)
	WRONG(path_mtu, 0);
	WRONG(path_mtu, 6);
	WRONG(ah_attr.port_num, 9);
	WRONG(max_dest_rd_atomic, 17);
	WRONG(min_rnr_timer, 32);
	WRONG(dest_qp_num, 1 << 24);
	bad = good;
	bad.ah_attr.is_global = 1;
	bad.ah_attr.grh.sgid_index = 200;
	CHECK(ibv_modify_qp(qp, &bad, rtr) == EINVAL);
	CHECK(!ibv_modify_qp(qp, &good, rtr));
	CHECK(!ibv_destroy_qp(qp));
	finish();
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{"depths", depths},
	{"limits", limits},
	{"full slots", full_slots},
	{"long messages", long_messages},
	{"receives that are not there", not_ready},
	{"strangers", strangers},
	{"states", states},
	{"wrong values", wrong_values},
};

int main(int argc, char **argv)
{
	size_t i, n = sizeof(cases) / sizeof(cases[0]);

	alarm(120);
	for (i = 0; i < n; i++) {
		double start = seconds();

		if (argc > 1 && (size_t)atoi(argv[1]) != i)
			continue;
		cases[i].run();
		printf("%s: %.1f s\n", cases[i].name, seconds() - start);
		fflush(stdout);
	}
	printf("%zu cases, all right\n", n);
	return 0;
}
