// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * XRC as programs see it: domains that are files, target QPs that several
 * processes share, each with an SRQ of its own, and the death of either side.
 */
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "xrc_objects.h"

#define RECEIVERS 2
#define MESSAGES 4000 /* to each receiver */
#define DEPTH 16
#define SLOT 4096
#define LEN 3000 /* three packets of 1024 */

static int cases;
static char path[] = "/tmp/sf-xrc.XXXXXX";

struct box {
	uint32_t sender, target, srqn[RECEIVERS], rkey[RECEIVERS];
	uint64_t addr[RECEIVERS];
	int ready, connected, opened, done, stop, events;
	uint64_t received[RECEIVERS];
};

static void post(struct ibv_srq *srq, struct ibv_mr *mr, uint64_t id)
{
	struct ibv_sge sge = {(uintptr_t)mr->addr + id * SLOT, SLOT, mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	CHECK(!ibv_post_srq_recv(srq, &wr, &bad));
}

static int wait_wc(struct ibv_cq *cq, struct ibv_wc *wc)
{
	double end = seconds() + 20;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, wc))) {
		CHECK(seconds() < end);
		sched_yield();
	}
	CHECK(n == 1);
	return wc->status;
}

static void wait_for(const int *word, int value)
{
	double end = seconds() + 20;

	while (LOAD(*word) < value) {
		CHECK(seconds() < end);
		usleep(1000);
	}
}

static void expect_event(struct end *e, enum ibv_event_type type)
{
	struct pollfd p = {e->ctx->async_fd, POLLIN, 0};
	struct ibv_async_event event;

	CHECK(poll(&p, 1, 20000) == 1);
	CHECK(!ibv_get_async_event(e->ctx, &event));
	CHECK(event.event_type == type);
	ibv_ack_async_event(&event);
}

/* ---- domains --------------------------------------------------------- */

static void domains(void)
{
	char other[sizeof(path) + 8];
	struct ibv_xrcd *a, *b, *c;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct end e, f;
	int fd, fd2;

	end_open(&e);
	end_open(&f);
	CHECK((fd = open(path, O_RDONLY)) >= 0);
	/* Errors are those of the kernel's uverbs. */
	CHECK(!open_domain(&e, fd, 0) && errno == EAGAIN);
	CHECK(!open_domain(&e, 1000, O_CREAT) && errno == EBADF);
	CHECK(a = open_domain(&e, fd, O_CREAT | O_EXCL));
	CHECK(!open_domain(&f, fd, O_CREAT | O_EXCL) && errno == EINVAL);
	CHECK(b = open_domain(&f, fd, 0)); /* another context */
	CHECK(c = open_domain(&f, fd, O_CREAT));
	/* It is the inode that counts. */
	snprintf(other, sizeof(other), "%s.link", path);
	CHECK(!link(path, other));
	CHECK((fd2 = open(other, O_RDONLY)) >= 0);
	CHECK(!ibv_close_xrcd(c));
	CHECK(c = open_domain(&f, fd2, 0));
	close(fd2);
	CHECK(!unlink(other));

	cq = new_cq(&e, 4, NULL);
	srq = new_srq(&e, a, cq, DEPTH);
	CHECK(ibv_close_xrcd(a) == EBUSY);
	CHECK(ibv_destroy_cq(cq) == EBUSY);
	CHECK(!ibv_destroy_srq(srq));
	CHECK(!ibv_destroy_cq(cq));
	CHECK(!ibv_close_xrcd(a));
	CHECK(!ibv_close_xrcd(b));
	CHECK(a = open_domain(&e, fd, 0)); /* c keeps it */
	CHECK(!ibv_close_xrcd(c));
	CHECK(!ibv_close_xrcd(a));
	CHECK(!open_domain(&e, fd, 0) && errno == EAGAIN);
	CHECK(a = open_domain(&e, -1, O_CREAT)); /* nobody else's */
	CHECK(!ibv_close_xrcd(a));
	close(fd);
	end_close(&f);
	end_close(&e);
	cases++;
}

/* ---- a shared target ------------------------------------------------- */

static void check_message(const unsigned char *buf, uint64_t n)
{
	int i;

	for (i = 0; i < LEN; i++)
		CHECK(buf[i] == (unsigned char)(n + i));
}

/* Receives MESSAGES, then until it is told to stop. */
static void receive(struct box *box, int number, struct ibv_srq *srq,
		    struct ibv_cq *cq, struct ibv_mr *mr)
{
	struct ibv_wc wc;
	int n;

	while (!LOAD(box->stop)) {
		n = ibv_poll_cq(cq, 1, &wc);
		CHECK(n >= 0);
		if (!n) {
			sched_yield();
			continue;
		}
		CHECK(wc.status == IBV_WC_SUCCESS);
		CHECK(wc.qp_num == box->target && wc.src_qp == box->sender);
		CHECK(wc.byte_len == LEN);
		check_message((unsigned char *)mr->addr + wc.wr_id * SLOT,
			      box->received[number]);
		post(srq, mr, wc.wr_id);
		ADD(box->received[number], 1);
	}
}

/* Number 0 creates the target, the other one opens it. */
static void receiver(struct box *box, int number)
{
	char *buf = aligned_alloc(4096, DEPTH * SLOT);
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct end e;
	int fd, i;

	CHECK(buf);
	end_open(&e);
	CHECK((fd = open(path, O_RDONLY)) >= 0);
	CHECK(xrcd = open_domain(&e, fd, O_CREAT));
	close(fd); /* the domain stays */
	CHECK(mr = ibv_reg_mr(e.pd, buf, DEPTH * SLOT, ALL_ACCESS));
	cq = new_cq(&e, DEPTH, NULL);
	srq = new_srq(&e, xrcd, cq, DEPTH);
	CHECK(!ibv_get_srq_num(srq, &box->srqn[number]));
	box->rkey[number] = mr->rkey;
	box->addr[number] = (uintptr_t)buf;
	for (i = 0; i < DEPTH; i++)
		post(srq, mr, i);
	if (number == 0) {
		qp = new_target(&e, xrcd);
		STORE(box->target, qp->qp_num);
		wait_for((int *)&box->sender, 1);
		connect_qp(&e, qp, box->sender);
		ADD(box->connected, 1);
	} else {
		wait_for(&box->connected, 1);
		CHECK(!open_target(&e, xrcd, box->sender) && errno == EINVAL);
		CHECK(qp = open_target(&e, xrcd, box->target));
		CHECK(qp->qp_num == box->target);
	}
	ADD(box->opened, 1);
	receive(box, number, srq, cq, mr);
	if (LOAD(box->events)) {
		expect_event(&e, IBV_EVENT_QP_REQ_ERR);
		expect_event(&e, IBV_EVENT_QP_LAST_WQE_REACHED);
	}
	CHECK(ibv_close_xrcd(xrcd) == EBUSY);
	CHECK(!ibv_destroy_qp(qp));
	CHECK(!ibv_destroy_srq(srq));
	CHECK(!ibv_destroy_cq(cq));
	CHECK(!ibv_dereg_mr(mr));
	CHECK(!ibv_close_xrcd(xrcd));
	end_close(&e);
	_exit(0);
}

struct sender {
	struct end e;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	unsigned char buf[SLOT];
	uint64_t sent[RECEIVERS];
};

/* By ibv_post_send() or by the builder, as the number of the message says. */
static int send_to(struct sender *s, uint32_t srqn, uint64_t n)
{
	struct ibv_sge sge = {(uintptr_t)s->buf, LEN, s->mr->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.qp_type.xrc.remote_srqn = srqn,
	};
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(s->qp);
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int i;

	for (i = 0; i < LEN; i++)
		s->buf[i] = n + i;
	if (n & 1) {
		CHECK(!ibv_post_send(s->qp, &wr, &bad));
	} else {
		ibv_wr_start(qpx);
		qpx->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_send(qpx);
		ibv_wr_set_xrc_srqn(qpx, srqn);
		ibv_wr_set_sge(qpx, sge.lkey, sge.addr, sge.length);
		CHECK(!ibv_wr_complete(qpx));
	}
	return wait_wc(s->cq, &wc);
}

static void sender_open(struct sender *s)
{
	memset(s, 0, sizeof(*s));
	end_open(&s->e);
	CHECK(s->mr = ibv_reg_mr(s->e.pd, s->buf, SLOT, ALL_ACCESS));
	s->cq = new_cq(&s->e, DEPTH, NULL);
	s->qp = new_sender(&s->e, s->cq, DEPTH);
}

static void sender_close(struct sender *s)
{
	CHECK(!ibv_destroy_qp(s->qp));
	CHECK(!ibv_destroy_cq(s->cq));
	CHECK(!ibv_dereg_mr(s->mr));
	end_close(&s->e);
}

static void start(struct box *box, struct sender *s, pid_t pid[RECEIVERS])
{
	int i;

	memset(box, 0, sizeof(*box));
	fflush(NULL);
	for (i = 0; i < RECEIVERS; i++) {
		CHECK((pid[i] = fork()) >= 0);
		if (!pid[i])
			receiver(box, i);
	}
	sender_open(s);
	STORE(box->sender, s->qp->qp_num);
	wait_for(&box->opened, RECEIVERS);
	connect_qp(&s->e, s->qp, box->target);
}

static void end_child(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
}

static void kill_child(pid_t pid)
{
	int status;

	CHECK(!kill(pid, SIGKILL));
	CHECK(waitpid(pid, &status, 0) == pid);
}

static void write_to(struct sender *s, const struct box *box, int number,
		     uint32_t srqn, int status)
{
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(s->qp);
	struct ibv_wc wc;

	ibv_wr_start(qpx);
	qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(qpx, box->rkey[number], box->addr[number]);
	ibv_wr_set_xrc_srqn(qpx, srqn);
	ibv_wr_set_sge(qpx, s->mr->lkey, (uintptr_t)s->buf, 1);
	CHECK(!ibv_wr_complete(qpx));
	CHECK(wait_wc(s->cq, &wc) == status);
}

/* Both get theirs; then the creator is killed, and the other goes on. */
static void shared_target(struct box *box)
{
	static struct sender s;
	pid_t pid[RECEIVERS];
	int i, n;

	start(box, &s, pid);
	for (n = 0; n < MESSAGES; n++)
		for (i = 0; i < RECEIVERS; i++)
			CHECK(send_to(&s, box->srqn[i], s.sent[i]++) ==
			      IBV_WC_SUCCESS);
	cases++;

	kill_child(pid[0]);
	for (n = 0; n < 100; n++)
		CHECK(send_to(&s, box->srqn[1], s.sent[1]++) == IBV_WC_SUCCESS);
	while (LOAD(box->received[1]) < s.sent[1])
		usleep(1000);
	cases++;

	/* With the last who has it open the target is gone. */
	STORE(box->stop, 1);
	end_child(pid[1]);
	CHECK(send_to(&s, box->srqn[1], 0) == IBV_WC_RETRY_EXC_ERR);
	sender_close(&s);
	cases++;
}

/* An SRQ number that is none: the target is in error, all who share it hear. */
static void wrong_srq(struct box *box)
{
	static struct sender s;
	pid_t pid[RECEIVERS];
	int i;

	start(box, &s, pid);
	write_to(&s, box, 0, box->srqn[0], IBV_WC_SUCCESS);
	CHECK(send_to(&s, 4000, 0) == IBV_WC_REM_INV_REQ_ERR);
	STORE(box->events, 1);
	STORE(box->stop, 1);
	for (i = 0; i < RECEIVERS; i++)
		end_child(pid[i]);
	sender_close(&s);
	cases++;

	/* Memory belongs to the domain of the SRQ that is named. */
	start(box, &s, pid);
	write_to(&s, box, 0, box->srqn[1], IBV_WC_REM_ACCESS_ERR);
	STORE(box->stop, 1);
	for (i = 0; i < RECEIVERS; i++)
		end_child(pid[i]);
	sender_close(&s);
	cases++;
}

/* ---- the sender dies ------------------------------------------------- */

static void doomed_sender(struct box *box)
{
	static struct sender s;

	sender_open(&s);
	STORE(box->sender, s.qp->qp_num);
	wait_for(&box->connected, 1);
	connect_qp(&s.e, s.qp, box->target);
	for (;;)
		CHECK(send_to(&s, box->srqn[0], s.sent[0]++) == IBV_WC_SUCCESS);
}

static enum ibv_qp_state state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(!ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
	return attr.qp_state;
}

static void senders_die(struct box *box)
{
	char *buf = aligned_alloc(4096, DEPTH * SLOT);
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_wc wc;
	struct end e;
	pid_t pid;
	int i, n, round;

	CHECK(buf);
	end_open(&e);
	CHECK(xrcd = open_domain(&e, -1, O_CREAT));
	CHECK(mr = ibv_reg_mr(e.pd, buf, DEPTH * SLOT, ALL_ACCESS));
	cq = new_cq(&e, DEPTH, NULL);
	srq = new_srq(&e, xrcd, cq, DEPTH);
	for (i = 0; i < DEPTH; i++)
		post(srq, mr, i);
	qp = new_target(&e, xrcd);
	for (round = 0; round < 10; round++) {
		memset(box, 0, sizeof(*box));
		box->target = qp->qp_num;
		CHECK(!ibv_get_srq_num(srq, &box->srqn[0]));
		fflush(NULL);
		CHECK((pid = fork()) >= 0);
		if (!pid)
			doomed_sender(box);
		wait_for((int *)&box->sender, 1);
		connect_qp(&e, qp, box->sender);
		STORE(box->connected, 1);
		/* Killed at some moment while messages come. */
		for (n = 0; n < 200 + round * 37; n++) {
			CHECK(wait_wc(cq, &wc) == IBV_WC_SUCCESS);
			check_message((unsigned char *)buf + wc.wr_id * SLOT,
				      n);
			post(srq, mr, wc.wr_id);
		}
		kill_child(pid);
		expect_event(&e, IBV_EVENT_QP_LAST_WQE_REACHED);
		CHECK(state_of(qp) == IBV_QPS_ERR);
		/* All receives come back: with a message, or flushed. */
		while (ibv_poll_cq(cq, 1, &wc) == 1)
			post(srq, mr, wc.wr_id);
		set_state(qp, IBV_QPS_RESET);
	}
	CHECK(!ibv_destroy_qp(qp));
	CHECK(!ibv_destroy_srq(srq));
	CHECK(!ibv_destroy_cq(cq));
	CHECK(!ibv_dereg_mr(mr));
	CHECK(!ibv_close_xrcd(xrcd));
	end_close(&e);
	free(buf);
	cases++;
}

int main(void)
{
	struct box *box = shared_memory(sizeof(*box));
	int fd;

	CHECK((fd = mkstemp(path)) >= 0);
	close(fd);
	domains();
	shared_target(box);
	wrong_srq(box);
	senders_die(box);
	unlink(path);
	printf("%d cases, all right\n", cases);
	return 0;
}
