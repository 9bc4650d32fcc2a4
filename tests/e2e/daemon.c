/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a program sees when the daemon dies: prints "ready", waits for the fatal
 * event that somebody else causes, then tries everything.  Nothing may hang or
 * crash; waiting readers wake; work in flight ends with an error.  "reopen":
 * opens a device again and again, after longer than the daemon waits.
 */
#include <pthread.h>
#include "rc.h"

#define SIZE 65536
#define SOON_MS 20000

static struct rc a, b, idle;
static volatile int fatal, woken;

static void *async_reader(void *arg)
{
	struct ibv_async_event event;

	(void)arg;
	CHECK(!ibv_get_async_event(a.ctx, &event));
	CHECK(event.event_type == IBV_EVENT_DEVICE_FATAL);
	ibv_ack_async_event(&event);
	fatal = 1;
	return NULL;
}

static void *comp_reader(void *arg)
{
	struct ibv_cq *cq;
	void *ctx;

	(void)arg;
	/* An error or, for what is flushed, an event. */
	if (!ibv_get_cq_event(idle.channel, &cq, &ctx))
		ibv_ack_cq_events(cq, 1);
	woken = 1;
	return NULL;
}

static void wait_for(volatile int *flag, const char *what)
{
	uint64_t end = rc_ms() + SOON_MS;

	while (!*flag) {
		if (rc_ms() > end) {
			fprintf(stderr, "%s does not come\n", what);
			_exit(1);
		}
		usleep(1000);
	}
}

static void *wait_in_thread(void *(*fn)(void *))
{
	static pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, fn, NULL));
	return &thread;
}

/* The fabric was told to leave after a second without users. */
static int reopen(void)
{
	struct ibv_device **list;
	struct ibv_context *ctx;
	struct ibv_port_attr port;
	int i;

	alarm(60);
	for (i = 0; i < 3; i++) {
		list = ibv_get_device_list(NULL);
		CHECK(list && list[0]);
		ctx = ibv_open_device(list[0]);
		CHECK(ctx);
		CHECK(!ibv_query_port(ctx, 1, &port));
		CHECK(!ibv_close_device(ctx));
		ibv_free_device_list(list);
		sleep(3);
	}
	return 0;
}

int main(int argc, char **argv)
{
	static char buf[2 * SIZE];
	struct ibv_wc wc = {0};
	int status, sends = 0;

	if (argc > 1 && !strcmp(argv[1], "reopen"))
		return reopen();
	alarm(60);
	rc_open(&a, 0);
	b.ctx = idle.ctx = a.ctx;
	b.pd = idle.pd = a.pd;
	b.timeout = idle.timeout = a.timeout;
	b.retry_cnt = idle.retry_cnt = a.retry_cnt;
	b.rnr_retry = idle.rnr_retry = a.rnr_retry;
	rc_create(&a, buf, SIZE);
	rc_create(&b, buf + SIZE, SIZE);
	rc_create(&idle, buf, SIZE);
	rc_pair(&a, &b);
	rc_connect(&idle, &a.peer);
	CHECK(!ibv_req_notify_cq(idle.cq, 0));
	CHECK(!rc_recv(&idle, 0, 64));
	wait_in_thread(async_reader);
	wait_in_thread(comp_reader);
	CHECK(!rc_post(&a, IBV_WR_RDMA_WRITE, 0, 4096));
	CHECK(rc_wait(&a, &wc, SOON_MS) == IBV_WC_SUCCESS);
	/* Nobody receives: it waits for ever, or until the device is lost. */
	CHECK(!rc_post(&a, IBV_WR_SEND, 0, 64));
	printf("ready\n");
	fflush(stdout);

	wait_for(&fatal, "the fatal event");
	status = rc_wait(&a, &wc, SOON_MS);
	printf("in flight: %d\n", status);
	CHECK(status > IBV_WC_SUCCESS);
	wait_for(&woken, "the completion event");
	/* Posting still returns, and what was posted fails. */
	while (rc_post(&b, IBV_WR_RDMA_WRITE, 0, 64) == 0 && ++sends < 1000) {
		status = rc_wait(&b, &wc, SOON_MS);
		CHECK(status > IBV_WC_SUCCESS);
	}
	CHECK(!ibv_reg_mr(a.pd, buf, SIZE, RC_ALL));
	CHECK(!ibv_create_cq(a.ctx, 1, NULL, NULL, 0));
	CHECK(!ibv_alloc_pd(a.ctx));
	CHECK(!ibv_create_comp_channel(a.ctx));
	/* Destroying may fail, but it returns. */
	ibv_destroy_qp(a.qp);
	ibv_destroy_cq(a.cq);
	ibv_dereg_mr(a.mr);
	ibv_destroy_comp_channel(a.channel);
	ibv_dealloc_pd(a.pd);
	CHECK(!ibv_close_device(a.ctx));
	printf("done\n");
	return 0;
}
