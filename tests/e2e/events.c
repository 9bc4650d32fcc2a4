/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion channels and asynchronous events: nothing is lost, nothing comes
 * for what is gone, nobody waits for ever.  events [MESSAGES [CASE]]
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include "pair.h"

#define DEPTH 64

static int messages = 6000;
static struct end end;

static struct ibv_comp_channel *new_channel(void)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(end.ctx);

	CHECK(ch);
	return ch;
}

static void post_recv(struct ibv_qp *qp, uint64_t wr_id)
{
	struct ibv_recv_wr wr = {.wr_id = wr_id}, *bad;

	CHECK(!ibv_post_recv(qp, &wr, &bad));
}

static void post_send(struct ibv_qp *qp, unsigned int flags)
{
	struct ibv_send_wr wr =
				   {
					   .opcode = IBV_WR_SEND,
					   .send_flags =
						   IBV_SEND_SIGNALED | flags,
				   },
			   *bad;

	CHECK(!ibv_post_send(qp, &wr, &bad));
}

static int drain(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n, all = 0;

	while ((n = ibv_poll_cq(cq, 1, &wc))) {
		CHECK(n == 1);
		all++;
	}
	return all;
}

static bool event_waits(struct ibv_comp_channel *ch)
{
	struct pollfd p = {ch->fd, POLLIN, 0};

	return poll(&p, 1, 0) == 1;
}

static void take_event(struct ibv_comp_channel *ch, struct ibv_cq *wanted)
{
	struct ibv_cq *cq;
	void *context;

	CHECK(!ibv_get_cq_event(ch, &cq, &context));
	CHECK(cq == wanted);
	ibv_ack_cq_events(cq, 1);
}

/* Two queue pairs that are connected with each other, a CQ each. */
struct loop {
	struct ibv_comp_channel *ch;
	struct ibv_cq *cq, *send_cq;
	struct ibv_qp *from, *to;
};

static void loop_open(struct loop *l, struct ibv_comp_channel *ch, int depth)
{
	l->ch = ch;
	l->cq = new_cq(&end, depth, ch);
	l->send_cq = new_cq(&end, depth, NULL);
	l->from = new_qp(&end, l->send_cq, l->send_cq, depth);
	l->to = new_qp(&end, l->cq, l->cq, depth);
	connect_qp(&end, l->from, l->to->qp_num);
	connect_qp(&end, l->to, l->from->qp_num);
}

/* Connected again after an error. */
static void loop_again(struct loop *l)
{
	set_state(l->to, IBV_QPS_RESET);
	set_state(l->from, IBV_QPS_RESET);
	connect_qp(&end, l->from, l->to->qp_num);
	connect_qp(&end, l->to, l->from->qp_num);
}

static void loop_close(struct loop *l)
{
	CHECK(!ibv_destroy_qp(l->from));
	CHECK(!ibv_destroy_qp(l->to));
	CHECK(!ibv_destroy_cq(l->cq));
	CHECK(!ibv_destroy_cq(l->send_cq));
}

/* ---- no wake-up is lost ------------------------------------------------ */

enum sleeper {
	READ,
	POLL,
	EPOLL,
	SLEEPERS
};

static void sleep_for_event(struct ibv_comp_channel *ch, int ep,
			    enum sleeper how)
{
	struct pollfd p = {ch->fd, POLLIN, 0};
	struct epoll_event e;

	if (how == POLL)
		CHECK(poll(&p, 1, 30000) == 1);
	if (how == EPOLL)
		CHECK(epoll_wait(ep, &e, 1, 30000) == 1);
}

/* Each message waits for the answer to the one before. */
static void wakeups_side(int to, int from, bool first)
{
	struct ibv_comp_channel *ch;
	struct ibv_cq *cq, *send_cq;
	struct ibv_qp *qp;
	struct epoll_event e = {.events = EPOLLIN};
	uint32_t peer;
	int ep, i;
	char byte;

	end_open(&end);
	ch = new_channel();
	CHECK((ep = epoll_create1(0)) >= 0);
	CHECK(!epoll_ctl(ep, EPOLL_CTL_ADD, ch->fd, &e));
	cq = new_cq(&end, DEPTH, ch);
	send_cq = new_cq(&end, DEPTH, NULL);
	qp = new_qp(&end, send_cq, cq, DEPTH);
	CHECK(write(to, &qp->qp_num, 4) == 4);
	CHECK(read(from, &peer, 4) == 4);
	connect_qp(&end, qp, peer);
	CHECK(write(to, "c", 1) == 1 && read(from, &byte, 1) == 1);
	post_recv(qp, 0);
	if (first)
		post_send(qp, 0);
	for (i = 0; i < messages; i++) {
		CHECK(!ibv_req_notify_cq(cq, 0));
		while (!drain(cq)) {
			sleep_for_event(ch, ep, i / 16 % SLEEPERS);
			take_event(ch, cq);
			CHECK(!ibv_req_notify_cq(cq, 0));
		}
		if (i + 1 < messages)
			post_recv(qp, i);
		if (i + 1 < messages || !first)
			post_send(qp, 0);
		drain(send_cq);
	}
	CHECK(write(to, "e", 1) == 1 && read(from, &byte, 1) == 1);
	close(ep);
	CHECK(!ibv_destroy_qp(qp));
	CHECK(!ibv_destroy_cq(cq)); /* an armed one, an unread event */
	CHECK(!ibv_destroy_cq(send_cq));
	CHECK(!ibv_destroy_comp_channel(ch));
	end_close(&end);
}

static void wakeups(void)
{
	int up[2], down[2], status;
	pid_t child;

	CHECK(!pipe(up) && !pipe(down));
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		wakeups_side(up[1], down[0], false);
		_exit(0);
	}
	wakeups_side(down[1], up[0], true);
	CHECK(waitpid(child, &status, 0) == child && !status);
}

/* ---- moderation --------------------------------------------------------- */

#define PERIOD 65535 /* us */

static void moderate(struct ibv_cq *cq, uint16_t count, uint16_t period)
{
	struct ibv_modify_cq_attr attr = {.attr_mask = IBV_CQ_ATTR_MODERATE,
					  .moderate = {count, period}};

	CHECK(!ibv_modify_cq(cq, &attr));
}

static void moderation(void)
{
	struct ibv_modify_cq_attr none = {};
	struct ibv_device_attr_ex attr = {};
	struct ibv_comp_channel *ch;
	double start, waited;
	struct loop l;
	bool early;
	int i, n;

	end_open(&end);
	CHECK(!ibv_query_device_ex(end.ctx, NULL, &attr));
	CHECK(attr.cq_mod_caps.max_cq_count == 65535);
	CHECK(attr.cq_mod_caps.max_cq_period == 65535);
	ch = new_channel();
	loop_open(&l, ch, DEPTH);
	CHECK(ibv_modify_cq(l.cq, &none) == EINVAL);
	moderate(l.cq, 8, PERIOD);
	for (n = 0; n < 3; n++) {
		for (i = 0; i < 10; i++)
			post_recv(l.to, i);
		CHECK(!ibv_req_notify_cq(l.cq, 0));
		start = seconds();
		for (i = 0; i < 7; i++)
			post_send(l.from, 0);
		early = event_waits(ch);
		waited = seconds() - start;
		CHECK(!early || waited >= PERIOD / 1e6);
		post_send(l.from, 0);
		take_event(ch, l.cq);
		CHECK(drain(l.cq) == 8);
		/* Too few: the period ends it. */
		CHECK(!ibv_req_notify_cq(l.cq, 0));
		start = seconds();
		post_send(l.from, 0);
		post_send(l.from, 0);
		take_event(ch, l.cq);
		CHECK(seconds() - start >= PERIOD / 1e6);
		CHECK(drain(l.cq) == 2);
		CHECK(drain(l.send_cq) == 10);
	}
	post_recv(l.to, 0);
	CHECK(!ibv_req_notify_cq(l.cq, 0));
	post_send(l.from, 0);
	moderate(l.cq, 0, 0);
	take_event(ch, l.cq);
	loop_close(&l);
	CHECK(!ibv_destroy_comp_channel(ch));
	end_close(&end);
}

/* ---- solicited ---------------------------------------------------------- */

static void solicited(void)
{
	struct ibv_comp_channel *ch;
	struct loop l;
	int i;

	end_open(&end);
	ch = new_channel();
	loop_open(&l, ch, DEPTH);
	for (i = 0; i < 20; i++)
		post_recv(l.to, i);
	CHECK(!ibv_req_notify_cq(l.cq, 1));
	post_send(l.from, 0);
	CHECK(!event_waits(ch));
	post_send(l.from, IBV_SEND_SOLICITED);
	take_event(ch, l.cq);
	/* One event for one arming. */
	post_send(l.from, IBV_SEND_SOLICITED);
	CHECK(!event_waits(ch));
	CHECK(drain(l.cq) == 3);
	/* Not for one that had come before. */
	post_send(l.from, IBV_SEND_SOLICITED);
	CHECK(drain(l.cq) == 1);
	CHECK(!ibv_req_notify_cq(l.cq, 1));
	CHECK(!event_waits(ch));
	/* Asked for more: any.  Asked for less: still any. */
	CHECK(!ibv_req_notify_cq(l.cq, 0));
	post_send(l.from, 0);
	take_event(ch, l.cq);
	CHECK(drain(l.cq) == 1);
	CHECK(!ibv_req_notify_cq(l.cq, 0));
	CHECK(!ibv_req_notify_cq(l.cq, 1));
	post_send(l.from, 0);
	CHECK(event_waits(ch));
	take_event(ch, l.cq);
	CHECK(drain(l.cq) == 1);
	/* One that has come, but that no poll has taken, counts. */
	post_send(l.from, 0);
	CHECK(!ibv_req_notify_cq(l.cq, 0));
	take_event(ch, l.cq);
	CHECK(drain(l.cq) == 1);
	/* An error wakes those who wait for solicited ones. */
	CHECK(!ibv_req_notify_cq(l.cq, 1));
	set_state(l.to, IBV_QPS_ERR);
	take_event(ch, l.cq);
	CHECK(drain(l.cq) == 20 - 7);
	loop_close(&l);
	CHECK(!ibv_destroy_comp_channel(ch));
	end_close(&end);
}

/* ---- many on one channel ------------------------------------------------ */

#define MANY 64

static void many_cqs(void)
{
	struct ibv_comp_channel *ch;
	static struct loop l[MANY];
	unsigned int rng = 1;
	int i, n, sent;

	end_open(&end);
	ch = new_channel();
	for (i = 0; i < MANY; i++) {
		loop_open(&l[i], ch, 4);
		l[i].cq->cq_context = &l[i];
	}
	CHECK(!fcntl(ch->fd, F_SETFL, O_NONBLOCK));
	for (n = 0; n < messages / MANY; n++) {
		struct ibv_cq *cq;
		void *context;
		bool hit[MANY] = {false};

		for (i = sent = 0; i < MANY; i++) {
			rng = rng * 1103515245 + 12345;
			CHECK(!ibv_req_notify_cq(l[i].cq, 0));
			if (rng >> 16 & 1)
				continue;
			post_recv(l[i].to, i);
			post_send(l[i].from, 0);
			hit[i] = true;
			sent++;
		}
		while (!ibv_get_cq_event(ch, &cq, &context)) {
			struct loop *at = context;

			CHECK(at >= l && at < l + MANY && at->cq == cq);
			CHECK(hit[at - l]);
			hit[at - l] = false;
			ibv_ack_cq_events(cq, 1);
			CHECK(drain(cq) == 1 && drain(at->send_cq) == 1);
			sent--;
		}
		CHECK(errno == EAGAIN);
		CHECK(!sent);
	}
	for (i = 0; i < MANY; i++)
		loop_close(&l[i]);
	CHECK(!ibv_destroy_comp_channel(ch));
	end_close(&end);
}

/* ---- destroyed with events ---------------------------------------------- */

static struct ibv_cq *victim;
static int destroyed;

static void *destroyer(void *arg)
{
	(void)arg;
	CHECK(!ibv_destroy_cq(victim));
	STORE(destroyed, 1);
	return NULL;
}

static void unacknowledged(void)
{
	struct ibv_comp_channel *ch;
	struct ibv_cq *cq;
	struct loop l;
	pthread_t t;
	void *context;
	int i;

	end_open(&end);
	ch = new_channel();
	loop_open(&l, ch, DEPTH);
	for (i = 0; i < 3; i++) {
		CHECK(!ibv_req_notify_cq(l.cq, 0));
		post_recv(l.to, 0);
		post_send(l.from, 0);
		CHECK(drain(l.cq) == 1);
	}
	CHECK(!ibv_get_cq_event(ch, &cq, &context));
	CHECK(!ibv_get_cq_event(ch, &cq, &context)); /* the third: unread */
	CHECK(!ibv_destroy_qp(l.to));
	CHECK(!ibv_destroy_qp(l.from));
	victim = l.cq;
	CHECK(!pthread_create(&t, NULL, destroyer, NULL));
	usleep(100000);
	CHECK(!LOAD(destroyed));
	ibv_ack_cq_events(cq, 1);
	usleep(50000);
	CHECK(!LOAD(destroyed));
	ibv_ack_cq_events(cq, 1);
	CHECK(!pthread_join(t, NULL));
	CHECK(!event_waits(ch));
	CHECK(!ibv_destroy_cq(l.send_cq));
	CHECK(!ibv_destroy_comp_channel(ch));
	end_close(&end);
}

/* More events than any pipe holds, and not one is read meanwhile. */
static void full_pipe(bool read_them)
{
	struct ibv_comp_channel *ch;
	struct loop l, other;
	int i;

	end_open(&end);
	ch = new_channel();
	loop_open(&l, ch, DEPTH);
	loop_open(&other, ch, DEPTH);
	for (i = 0; i < 5 * messages; i++) {
		CHECK(!ibv_req_notify_cq(l.cq, 0));
		post_recv(l.to, i);
		post_send(l.from, 0);
		CHECK(drain(l.cq) == 1 && drain(l.send_cq) == 1);
	}
	CHECK(!ibv_req_notify_cq(other.cq, 0));
	post_recv(other.to, i);
	post_send(other.from, 0);
	for (i = 0; read_them && i < 5 * messages; i++)
		take_event(ch, l.cq);
	if (!read_them)
		loop_close(&l); /* its events go with it */
	take_event(ch, other.cq);
	CHECK(!event_waits(ch));
	if (read_them)
		loop_close(&l);
	loop_close(&other);
	CHECK(!ibv_destroy_comp_channel(ch));
	end_close(&end);
}

static void full_pipe_read(void)
{
	full_pipe(true);
}

static void full_pipe_destroyed(void)
{
	full_pipe(false);
}

/* ---- asynchronous ------------------------------------------------------- */

static void fail_remotely(struct loop *l)
{
	struct ibv_send_wr wr =
				   {
					   .opcode = IBV_WR_RDMA_WRITE,
					   .send_flags = IBV_SEND_SIGNALED |
							 IBV_SEND_INLINE,
				   },
			   *bad;
	uint8_t bytes[8] = {0};
	struct ibv_sge sge = {(uintptr_t)bytes, 8, 0};

	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.wr.rdma.rkey = 0x123456;
	CHECK(!ibv_post_send(l->from, &wr, &bad));
}

static bool async_waits(void)
{
	struct pollfd p = {end.ctx->async_fd, POLLIN, 0};

	return poll(&p, 1, 0) == 1;
}

static void asynchronous(void)
{
	struct ibv_async_event event;
	struct ibv_comp_channel *ch;
	struct loop l;
	int i;

	end_open(&end);
	ch = new_channel();
	loop_open(&l, ch, DEPTH);
	fail_remotely(&l);
	CHECK(async_waits());
	CHECK(!ibv_get_async_event(end.ctx, &event));
	CHECK(event.event_type == IBV_EVENT_QP_ACCESS_ERR);
	CHECK(event.element.qp == l.to);
	ibv_ack_async_event(&event);
	CHECK(!async_waits());
	loop_close(&l);
	/* Unread: they go with their object. */
	for (i = 0; i < messages / 32; i++) {
		loop_open(&l, ch, 1);
		fail_remotely(&l);
		if (i % 2)
			loop_close(&l);
		if (i % 2)
			continue;
		loop_again(&l);
		fail_remotely(&l);
		loop_close(&l);
	}
	CHECK(!async_waits());
	CHECK(!ibv_destroy_comp_channel(ch));
	end_close(&end);
}

/* Each thread destroys its own; all their unread events are in one pipe. */
static void *fail_and_destroy(void *arg)
{
	struct loop l;
	int i;

	for (i = 0; i < messages / 300; i++) {
		loop_open(&l, arg, DEPTH);
		CHECK(!ibv_req_notify_cq(l.cq, 0));
		post_recv(l.to, 0);
		fail_remotely(&l); /* flushes that, too */
		loop_close(&l);
	}
	return NULL;
}

static void destroyed_at_once(void)
{
	static struct loop bystander[MANY];
	struct ibv_comp_channel *ch;
	pthread_t t[8];
	int i, j;

	end_open(&end);
	ch = new_channel();
	for (i = 0; i < MANY; i++) {
		loop_open(&bystander[i], ch, 4);
		for (j = 0; j < 16; j++) {
			fail_remotely(&bystander[i]);
			loop_again(&bystander[i]);
		}
	}
	for (i = 0; i < 8; i++)
		CHECK(!pthread_create(&t[i], NULL, fail_and_destroy, ch));
	for (i = 0; i < 8; i++)
		CHECK(!pthread_join(t[i], NULL));
	for (i = 0; i < MANY; i++) {
		CHECK(async_waits());
		loop_close(&bystander[i]);
	}
	CHECK(!async_waits() && !event_waits(ch));
	CHECK(!ibv_destroy_comp_channel(ch));
	end_close(&end);
}

/* A CQ that is full tells so, once, and its QPs are in ERR. */
static void overrun(void)
{
	struct ibv_async_event event;
	bool seen_cq = false, seen_qp = false;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct loop l;
	int i;

	end_open(&end);
	l.cq = new_cq(&end, 2, NULL);
	l.send_cq = new_cq(&end, 16, NULL);
	l.from = new_qp(&end, l.send_cq, l.send_cq, 8);
	l.to = new_qp(&end, l.cq, l.cq, 8);
	connect_qp(&end, l.from, l.to->qp_num);
	connect_qp(&end, l.to, l.from->qp_num);
	for (i = 0; i < 4; i++)
		post_recv(l.to, i);
	for (i = 0; i < 4; i++)
		post_send(l.from, 0);
	while (async_waits()) {
		CHECK(!ibv_get_async_event(end.ctx, &event));
		if (event.event_type == IBV_EVENT_CQ_ERR) {
			CHECK(!seen_cq && event.element.cq == l.cq);
			seen_cq = true;
		} else {
			CHECK(event.event_type == IBV_EVENT_QP_FATAL);
			CHECK(!seen_qp && event.element.qp == l.to);
			seen_qp = true;
		}
		ibv_ack_async_event(&event);
	}
	CHECK(seen_cq && seen_qp);
	CHECK(!ibv_query_qp(l.to, &attr, IBV_QP_STATE, &init));
	CHECK(attr.qp_state == IBV_QPS_ERR);
	CHECK(drain(l.cq) == 2);
	CHECK(drain(l.send_cq) == 4);
	loop_close(&l);
	end_close(&end);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{"no wake-up is lost", wakeups},
	{"solicited", solicited},
	{"moderation", moderation},
	{"many CQs on one channel", many_cqs},
	{"destroy waits for acknowledgement", unacknowledged},
	{"a full pipe, read late", full_pipe_read},
	{"a full pipe, never read", full_pipe_destroyed},
	{"asynchronous events", asynchronous},
	{"many are destroyed at once", destroyed_at_once},
	{"overrun of a CQ", overrun},
};

int main(int argc, char **argv)
{
	size_t i, n = sizeof(cases) / sizeof(cases[0]);

	if (argc > 1)
		messages = atoi(argv[1]);
	alarm(120 + messages / 1000);
	for (i = 0; i < n; i++) {
		double start = seconds();

		if (argc > 2 && (size_t)atoi(argv[2]) != i)
			continue;
		cases[i].run();
		printf("%s: %.1f s\n", cases[i].name, seconds() - start);
		fflush(stdout);
	}
	printf("%zu cases, all right\n", n);
	return 0;
}
