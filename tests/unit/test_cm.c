// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Communication management: formats byte by byte, and two connection managers
 * over a network that loses, repeats and delays, in virtual time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <errno.h>

#include "rnic/cm.h"

#define SEC 1000000000ull
#define SERVICE RNIC_CM_SERVICE(0x106, 7471)
#define CONNS 64

/* ---- formats ---------------------------------------------------------- */

static uint8_t mad[RNIC_MAD_LEN];
#define DATA (mad + 24)

static uint64_t be(const uint8_t *p, int n)
{
	uint64_t v = 0;

	while (n--)
		v = v << 8 | *p++;
	return v;
}

static void test_req_lies_where_table_106_says(void **state)
{
	struct rnic_cm_msg m = {.attr = RNIC_CM_REQ,
				.tid = 0x1122334455667788,
				.local_id = 0xa1b2c3d4};

	(void)state;
	m.req.service_id = 0x0000000001061d2f;
	m.req.ca_guid = 0x0203040506070809;
	m.req.qkey = 0x80010000;
	m.req.qpn = 0x123456;
	m.req.responder_resources = 7;
	m.req.initiator_depth = 9;
	m.req.remote_timeout = 20;
	m.req.transport = 3;
	m.req.flow_control = 1;
	m.req.psn = 0xfedcba;
	m.req.local_timeout = 21;
	m.req.retry_count = 6;
	m.req.pkey = 0xffff;
	m.req.mtu = 5;
	m.req.rnr_retry_count = 7;
	m.req.max_cm_retries = 15;
	m.req.srq = 1;
	m.req.extended_transport = 1;
	m.req.path.local_lid = 0x1234;
	m.req.path.remote_lid = 0x5678;
	m.req.path.local_gid[15] = 1;
	m.req.path.remote_gid[0] = 0xfe;
	m.req.path.flow_label = 0xabcde;
	m.req.path.rate = 3;
	m.req.path.traffic_class = 0x55;
	m.req.path.hop_limit = 64;
	m.req.path.sl = 4;
	m.req.path.subnet_local = 1;
	m.req.path.ack_timeout = 18;
	m.private_data[0] = 0x77;
	m.private_data[91] = 0x66;
	m.private_data[92] = 0x55; /* has no room */
	assert_true(rnic_cm_pack(&m, mad));
	assert_int_equal(be(mad, 4), 0x01070203);
	assert_int_equal(be(mad + 8, 8), 0x1122334455667788);
	assert_int_equal(be(mad + 16, 2), 0x10);
	assert_int_equal(be(DATA, 4), 0xa1b2c3d4);
	assert_int_equal(be(DATA + 8, 8), 0x0000000001061d2f);
	assert_int_equal(be(DATA + 16, 8), 0x0203040506070809);
	assert_int_equal(be(DATA + 28, 4), 0x80010000);
	assert_int_equal(be(DATA + 32, 4), 0x12345607);
	assert_int_equal(be(DATA + 36, 4), 9);
	assert_int_equal(be(DATA + 40, 4), 20 << 3 | 3 << 1 | 1);
	assert_int_equal(be(DATA + 44, 4), 0xfedcba00 | 21 << 3 | 6);
	assert_int_equal(be(DATA + 48, 2), 0xffff);
	assert_int_equal(DATA[50], 5 << 4 | 7);
	assert_int_equal(DATA[51], 15 << 4 | 1 << 3 | 1);
	assert_int_equal(be(DATA + 52, 4), 0x12345678);
	assert_int_equal(DATA[71], 1);
	assert_int_equal(DATA[72], 0xfe);
	assert_int_equal(be(DATA + 88, 4), 0xabcdeu << 12 | 3);
	assert_int_equal(DATA[92], 0x55);
	assert_int_equal(DATA[93], 64);
	assert_int_equal(DATA[94], 4 << 4 | 1 << 3);
	assert_int_equal(DATA[95], 18 << 3);
	assert_int_equal(DATA[140], 0x77);
	assert_int_equal(DATA[231], 0x66);
}

static void test_rep_lies_where_table_110_says(void **state)
{
	struct rnic_cm_msg m = {.attr = RNIC_CM_REP,
				.local_id = 0x01020304,
				.remote_id = 0x05060708};

	(void)state;
	m.rep.qkey = 0x11;
	m.rep.qpn = 0x123456;
	m.rep.vendor_h = 0x00;
	m.rep.vendor_m = 0x02;
	m.rep.vendor_l = 0xc9;
	m.rep.psn = 0xabcdef;
	m.rep.responder_resources = 1;
	m.rep.initiator_depth = 2;
	m.rep.target_ack_delay = 15;
	m.rep.failover_accepted = 2;
	m.rep.flow_control = 1;
	m.rep.rnr_retry_count = 7;
	m.rep.srq = 1;
	m.rep.ca_guid = 0x1020304050607080;
	m.private_data[195] = 0x99;
	assert_true(rnic_cm_pack(&m, mad));
	assert_int_equal(be(DATA, 8), 0x0102030405060708);
	assert_int_equal(be(DATA + 8, 4), 0x11);
	assert_int_equal(be(DATA + 12, 4), 0x12345600);
	assert_int_equal(DATA[19], 0x02);
	assert_int_equal(be(DATA + 20, 4), 0xabcdefc9);
	assert_int_equal(DATA[24], 1);
	assert_int_equal(DATA[25], 2);
	assert_int_equal(DATA[26], 15 << 3 | 2 << 1 | 1);
	assert_int_equal(DATA[27], 7 << 5 | 1 << 4);
	assert_int_equal(be(DATA + 28, 8), 0x1020304050607080);
	assert_int_equal(DATA[231], 0x99);
}

static void test_short_messages_lie_where_they_should(void **state)
{
	struct rnic_cm_msg m = {.attr = RNIC_CM_REJ};

	(void)state;
	m.rej.about = 1;
	m.rej.info_len = 8;
	m.rej.reason = 28;
	m.rej.info[0] = 0xaa;
	m.private_data[147] = 0xbb;
	rnic_cm_pack(&m, mad);
	assert_int_equal(DATA[8], 0x40);
	assert_int_equal(DATA[9], 8 << 1);
	assert_int_equal(be(DATA + 10, 2), 28);
	assert_int_equal(DATA[12], 0xaa);
	assert_int_equal(DATA[231], 0xbb);

	memset(&m, 0, sizeof(m));
	m.attr = RNIC_CM_MRA;
	m.mra.about = 1;
	m.mra.service_timeout = 24;
	rnic_cm_pack(&m, mad);
	assert_int_equal(DATA[8], 0x40);
	assert_int_equal(DATA[9], 24 << 3);

	memset(&m, 0, sizeof(m));
	m.attr = RNIC_CM_DREQ;
	m.dreq.remote_qpn = 0x10203;
	rnic_cm_pack(&m, mad);
	assert_int_equal(be(DATA + 8, 4), 0x01020300);

	memset(&m, 0, sizeof(m));
	m.attr = RNIC_CM_SIDR_REP;
	m.remote_id = 0x55;
	m.sidr_rep.status = 2;
	m.sidr_rep.qpn = 0x10203;
	m.sidr_rep.service_id = 0x0102030405060708;
	m.sidr_rep.qkey = 0x01234567;
	m.private_data[0] = 0xcc;
	rnic_cm_pack(&m, mad);
	assert_int_equal(be(DATA, 4), 0x55);
	assert_int_equal(DATA[4], 2);
	assert_int_equal(be(DATA + 8, 4), 0x01020300);
	assert_int_equal(be(DATA + 12, 8), 0x0102030405060708);
	assert_int_equal(be(DATA + 20, 4), 0x01234567);
	assert_int_equal(DATA[96], 0xcc);
}

static void test_what_is_packed_is_unpacked(void **state)
{
	uint8_t again[RNIC_MAD_LEN];
	struct rnic_cm_msg m;
	uint32_t attr;
	int round, i;

	(void)state;
	srand(1);
	for (attr = RNIC_CM_REQ; attr <= RNIC_CM_SIDR_REP; attr++)
		for (round = 0; round < 50; round++) {
			for (i = 24; i < RNIC_MAD_LEN; i++)
				mad[i] = rand();
			memset(mad, 0, 24);
			memcpy(mad, "\1\7\2\3", 4);
			mad[17] = attr;
			assert_true(rnic_cm_unpack(&m, mad, sizeof(mad)));
			assert_true(rnic_cm_pack(&m, again));
			/* Reserved bits go; what is left stays. */
			memcpy(mad, again, sizeof(mad));
			assert_true(rnic_cm_unpack(&m, mad, sizeof(mad)));
			assert_true(rnic_cm_pack(&m, again));
			assert_memory_equal(mad, again, sizeof(mad));
		}
}

static void test_what_is_no_message_is_refused(void **state)
{
	struct rnic_cm_msg m = {.attr = RNIC_CM_RTU};

	(void)state;
	rnic_cm_pack(&m, mad);
	assert_true(rnic_cm_unpack(&m, mad, sizeof(mad)));
	assert_false(rnic_cm_unpack(&m, mad, sizeof(mad) - 1));
	mad[1] = 3; /* another class */
	assert_false(rnic_cm_unpack(&m, mad, sizeof(mad)));
	mad[1] = 7;
	mad[2] = 1; /* another version */
	assert_false(rnic_cm_unpack(&m, mad, sizeof(mad)));
	mad[2] = 2;
	mad[17] = 0x19; /* LAP */
	assert_false(rnic_cm_unpack(&m, mad, sizeof(mad)));
	m.attr = 0;
	assert_false(rnic_cm_pack(&m, mad));
}

static void test_ip_header(void **state)
{
	struct rnic_cm_ip ip = {.version = 4, .src_port = 0x1234}, got;
	uint8_t h[RNIC_CM_IP_HEADER];

	(void)state;
	memcpy(ip.src, "\xc0\xa8\0\1", 4);
	memcpy(ip.dst, "\xc0\xa8\0\2", 4);
	rnic_cm_ip_pack(&ip, h);
	assert_int_equal(h[0], 0);
	assert_int_equal(h[1], 0x40);
	assert_int_equal(be(h + 2, 2), 0x1234);
	assert_int_equal(be(h + 16, 4), 0xc0a80001);
	assert_int_equal(be(h + 32, 4), 0xc0a80002);
	assert_true(rnic_cm_ip_unpack(&got, h));
	assert_memory_equal(&got, &ip, sizeof(ip));
	ip.version = 6;
	memset(ip.src, 0x20, 16);
	rnic_cm_ip_pack(&ip, h);
	assert_int_equal(h[1], 0x60);
	assert_true(rnic_cm_ip_unpack(&got, h));
	assert_memory_equal(&got, &ip, sizeof(ip));
	h[1] = 0x50;
	assert_false(rnic_cm_ip_unpack(&got, h));
}

/* ---- two hosts and a network ------------------------------------------- */

struct packet {
	int to;
	struct rnic_cm_path path;
	uint8_t mad[RNIC_MAD_LEN];
};

struct side {
	struct rnic_cm cm;
	struct rnic_cm_conn conn[CONNS];
	uint32_t id; /* of the one conversation that most tests have */
	int requests, events, last;
	int answer; /* what ops->request says */
	struct rnic_cm_msg msg;
};

static struct side side[2];
static struct packet queue[4096];
static int queued;
static int sent[0x20], drop_attr, drop_count;
static uint64_t now;

static void net_send(void *host, const struct rnic_cm_path *path,
		     const uint8_t *m)
{
	int from = (struct side *)host - side;
	struct packet *p;

	sent[m[17]]++;
	if (m[17] == drop_attr && drop_count) {
		drop_count--;
		return;
	}
	assert_true(queued < 4096);
	p = &queue[queued++];
	p->to = !from;
	p->path = *path;
	memcpy(p->path.sgid, path->dgid, 16);
	memcpy(p->path.dgid, path->sgid, 16);
	p->path.dlid = path->slid;
	p->path.slid = path->dlid;
	memcpy(p->mad, m, RNIC_MAD_LEN);
}

static int net_request(void *host, uint32_t conn,
		       const struct rnic_cm_path *path,
		       const struct rnic_cm_msg *msg)
{
	struct side *s = host;

	(void)path;
	s->requests++;
	s->msg = *msg;
	if (!s->answer)
		s->id = conn;
	return s->answer;
}

static void net_event(void *host, uint32_t conn, enum rnic_cm_event event,
		      const struct rnic_cm_msg *msg)
{
	struct side *s = host;

	assert_int_equal(conn, s->id);
	s->events++;
	s->last = event;
	if (msg)
		s->msg = *msg;
}

static const struct rnic_cm_ops net_ops = {net_send, net_request, net_event};

static void deliver(void)
{
	struct packet p;

	while (queued) {
		p = queue[0];
		memmove(queue, queue + 1, --queued * sizeof(p));
		rnic_cm_receive(&side[p.to].cm, now, &p.path, p.mad,
				sizeof(p.mad));
	}
}

/* Runs both until @until. */
static void pass(uint64_t until)
{
	uint64_t next, other;

	for (;;) {
		deliver();
		next = rnic_cm_tick(&side[0].cm, now);
		other = rnic_cm_tick(&side[1].cm, now);
		if (queued)
			continue;
		if (other < next)
			next = other;
		if (next > until)
			break;
		if (next > now)
			now = next;
	}
	now = until;
}

static const struct rnic_cm_path path = {
	.dev = 0,
	.port = 1,
	.sgid = {0xfe, 0x80, [15] = 1},
	.dgid = {0xfe, 0x80, [15] = 2},
	.slid = 1,
	.dlid = 2,
	.pkey = 0xffff,
	.mtu = RNIC_MTU_4096,
	.life_time = 14,
};

static struct rnic_cm_param param(uint32_t qpn)
{
	return (struct rnic_cm_param){
		.qpn = qpn,
		.psn = qpn * 3,
		.ca_guid = qpn * 5,
		.responder_resources = qpn & 15,
		.initiator_depth = (qpn & 15) + 1,
		.retry_count = 7,
		.rnr_retry_count = 6,
		.private_len = 4,
		.private_data = "abc",
	};
}

static void call(void)
{
	struct rnic_cm_param p = param(0x101);

	assert_int_equal(rnic_cm_create(&side[0].cm, &side[0].id), 0);
	assert_int_equal(rnic_cm_connect(&side[0].cm, now, side[0].id, &path,
					 SERVICE, &p),
			 0);
}

static void answer(void)
{
	struct rnic_cm_param p = param(0x203);

	assert_int_equal(rnic_cm_accept(&side[1].cm, now, side[1].id, &p), 0);
}

static void establish(void)
{
	call();
	deliver();
	answer();
	deliver();
	assert_int_equal(rnic_cm_ready(&side[0].cm, now, side[0].id), 0);
	deliver();
	assert_int_equal(side[1].last, RNIC_CM_EV_ESTABLISHED);
}

static int state_of(int i)
{
	const struct rnic_cm_conn *c = rnic_cm_find(&side[i].cm, side[i].id);

	return c ? c->state : RNIC_CM_FREE;
}

static void hang_up(void)
{
	rnic_cm_destroy(&side[0].cm, now, side[0].id);
	rnic_cm_destroy(&side[1].cm, now, side[1].id);
	pass(now + 100 * SEC);
	assert_int_equal(side[0].cm.live, 0);
	assert_int_equal(side[1].cm.live, 0);
}

static int setup(void **state)
{
	int i;

	(void)state;
	memset(side, 0, sizeof(side));
	memset(sent, 0, sizeof(sent));
	queued = drop_attr = drop_count = 0;
	now = 1000;
	for (i = 0; i < 2; i++)
		rnic_cm_init(&side[i].cm, side[i].conn, CONNS, i * 1000,
			     &net_ops, &side[i]);
	return 0;
}

/* ---- promises ----------------------------------------------------------- */

static void test_a_connection_comes_up_and_down(void **state)
{
	(void)state;
	establish();
	assert_int_equal(state_of(0), RNIC_CM_ESTABLISHED);
	assert_int_equal(state_of(1), RNIC_CM_ESTABLISHED);
	assert_int_equal(rnic_cm_disconnect(&side[0].cm, now, side[0].id), 0);
	deliver();
	/* Whether or not the peer's program ever does anything. */
	assert_int_equal(side[0].last, RNIC_CM_EV_DISCONNECTED);
	assert_int_equal(side[1].last, RNIC_CM_EV_DISCONNECTED);
	assert_int_equal(state_of(0), RNIC_CM_TIMEWAIT);
	assert_int_equal(state_of(1), RNIC_CM_TIMEWAIT);
	assert_int_equal(rnic_cm_disconnect(&side[1].cm, now, side[1].id), 0);
	deliver();
	assert_int_equal(sent[RNIC_CM_DREQ], 1);
	pass(now + SEC);
	assert_int_equal(side[0].last, RNIC_CM_EV_TIMEWAIT_EXIT);
	assert_int_equal(side[1].last, RNIC_CM_EV_TIMEWAIT_EXIT);
	assert_int_equal(rnic_cm_disconnect(&side[0].cm, now, side[0].id),
			 EINVAL);
	hang_up();
}

static void test_the_request_arrives_as_it_was_sent(void **state)
{
	(void)state;
	call();
	deliver();
	assert_int_equal(side[1].requests, 1);
	assert_int_equal(side[1].msg.req.service_id, SERVICE);
	assert_int_equal(side[1].msg.req.qpn, 0x101);
	assert_string_equal((char *)side[1].msg.private_data, "abc");
	hang_up();
}

static void test_qp_attributes_fit_together(void **state)
{
	struct rnic_qp_attr a = {.state = RNIC_RTR}, b = {.state = RNIC_RTR};
	uint32_t mask;

	(void)state;
	establish();
	assert_int_equal(rnic_cm_qp_attr(&side[0].cm, side[0].id, &a, &mask),
			 0);
	assert_int_equal(mask, RNIC_QP_STATE | RNIC_QP_AV | RNIC_QP_PATH_MTU |
				       RNIC_QP_DEST_QPN | RNIC_QP_RQ_PSN |
				       RNIC_QP_MAX_DEST_RD_ATOMIC |
				       RNIC_QP_MIN_RNR_TIMER);
	assert_int_equal(rnic_cm_qp_attr(&side[1].cm, side[1].id, &b, &mask),
			 0);
	assert_int_equal(a.dest_qpn, 0x203);
	assert_int_equal(b.dest_qpn, 0x101);
	assert_int_equal(a.av.dlid, 2);
	assert_int_equal(b.av.dlid, 1);
	assert_int_equal(a.path_mtu, RNIC_MTU_4096);
	assert_int_equal(a.rq_psn, 0x101 * 3);
	assert_int_equal(b.rq_psn, 0x203 * 3);
	assert_int_equal(a.max_dest_rd_atomic, (0x203 & 15) + 1);
	a.state = b.state = RNIC_RTS;
	rnic_cm_qp_attr(&side[0].cm, side[0].id, &a, &mask);
	rnic_cm_qp_attr(&side[1].cm, side[1].id, &b, &mask);
	assert_int_equal(a.sq_psn, 0x203 * 3);
	assert_int_equal(b.sq_psn, 0x101 * 3);
	assert_int_equal(a.max_rd_atomic, 0x203 & 15);
	assert_int_equal(a.timeout, 15);
	assert_int_equal(b.retry_cnt, 7);
	assert_int_equal(b.rnr_retry, 6);
	a.state = RNIC_SQD;
	assert_int_equal(rnic_cm_qp_attr(&side[0].cm, side[0].id, &a, &mask),
			 EINVAL);
	hang_up();
}

static void test_every_message_may_be_lost(void **state)
{
	static const int attrs[] = {RNIC_CM_REQ, RNIC_CM_REP, RNIC_CM_RTU,
				    RNIC_CM_DREQ, RNIC_CM_DREP};
	size_t i;

	(void)state;
	for (i = 0; i < 5; i++) {
		setup(NULL);
		drop_attr = attrs[i];
		drop_count = 3;
		call();
		pass(now + 30 * SEC);
		assert_int_equal(side[1].requests, 1);
		answer();
		pass(now + 30 * SEC);
		assert_int_equal(side[0].last, RNIC_CM_EV_REP);
		assert_int_equal(rnic_cm_ready(&side[0].cm, now, side[0].id),
				 0);
		pass(now + 300 * SEC);
		assert_int_equal(side[1].last, RNIC_CM_EV_ESTABLISHED);
		assert_int_equal(side[1].events, 1);
		rnic_cm_disconnect(&side[0].cm, now, side[0].id);
		pass(now + 30 * SEC);
		assert_int_equal(side[0].last, RNIC_CM_EV_TIMEWAIT_EXIT);
		assert_int_equal(side[0].events, 3);
		assert_int_equal(side[1].last, RNIC_CM_EV_TIMEWAIT_EXIT);
		assert_int_equal(side[1].events, 3);
		hang_up();
	}
}

static void test_nobody_answers(void **state)
{
	(void)state;
	drop_attr = RNIC_CM_REQ;
	drop_count = 1000;
	call();
	pass(now + 200 * SEC);
	assert_int_equal(sent[RNIC_CM_REQ], 16);
	assert_int_equal(side[0].last, RNIC_CM_EV_UNREACHABLE);
	assert_int_equal(side[0].events, 1);
	hang_up();
}

static void test_nobody_confirms(void **state)
{
	(void)state;
	call();
	deliver();
	answer();
	drop_attr = RNIC_CM_REP;
	drop_count = 1000;
	deliver();
	drop_attr = RNIC_CM_RTU;
	rnic_cm_ready(&side[0].cm, now, side[0].id);
	pass(now + 200 * SEC);
	assert_int_equal(side[1].last, RNIC_CM_EV_UNREACHABLE);
	/* The other side learns that it was for nothing: REP, REJ, timewait. */
	assert_int_equal(side[0].events, 3);
	assert_int_equal(side[0].last, RNIC_CM_EV_TIMEWAIT_EXIT);
	hang_up();
}

static void test_a_slow_program_has_its_time(void **state)
{
	(void)state;
	call();
	pass(now + 60 * SEC);
	assert_true(sent[RNIC_CM_MRA] >= 1);
	assert_true(sent[RNIC_CM_REQ] <= 3);
	answer();
	pass(now + 60 * SEC);
	assert_int_equal(side[0].last, RNIC_CM_EV_REP);
	assert_true(sent[RNIC_CM_REP] <= 3);
	assert_int_equal(rnic_cm_ready(&side[0].cm, now, side[0].id), 0);
	deliver();
	assert_int_equal(state_of(1), RNIC_CM_ESTABLISHED);
	hang_up();
}

static void test_duplicates_change_nothing(void **state)
{
	struct packet copy[8];
	int i, n;

	(void)state;
	call();
	for (n = 0; n < 3; n++) {
		int kept = queued;

		memcpy(copy, queue, kept * sizeof(copy[0]));
		deliver();
		for (i = 0; i < kept; i++)
			queue[queued++] = copy[i];
		deliver();
		if (n == 0)
			answer();
		if (n == 1)
			rnic_cm_ready(&side[0].cm, now, side[0].id);
	}
	assert_int_equal(side[1].requests, 1);
	assert_int_equal(side[0].events, 1);
	assert_int_equal(side[1].events, 1);
	assert_int_equal(state_of(0), RNIC_CM_ESTABLISHED);
	assert_int_equal(state_of(1), RNIC_CM_ESTABLISHED);
	hang_up();
}

static void test_both_hang_up_at_once(void **state)
{
	(void)state;
	establish();
	rnic_cm_disconnect(&side[0].cm, now, side[0].id);
	rnic_cm_disconnect(&side[1].cm, now, side[1].id);
	deliver();
	assert_int_equal(side[0].last, RNIC_CM_EV_DISCONNECTED);
	assert_int_equal(side[1].last, RNIC_CM_EV_DISCONNECTED);
	assert_int_equal(side[0].events, 2); /* the REP was the first */
	hang_up();
}

static void test_a_reject_carries_its_reason_and_data(void **state)
{
	(void)state;
	call();
	deliver();
	assert_int_equal(rnic_cm_reject(&side[1].cm, now, side[1].id,
					RNIC_CM_CONSUMER, "no!", 4),
			 0);
	deliver();
	assert_int_equal(side[0].last, RNIC_CM_EV_REJECTED);
	assert_int_equal(side[0].msg.rej.reason, RNIC_CM_CONSUMER);
	assert_string_equal((char *)side[0].msg.private_data, "no!");
	assert_int_equal(state_of(0), RNIC_CM_IDLE);
	hang_up();
}

static void test_the_active_side_may_reject_the_reply(void **state)
{
	(void)state;
	call();
	deliver();
	answer();
	deliver();
	assert_int_equal(rnic_cm_reject(&side[0].cm, now, side[0].id,
					RNIC_CM_CONSUMER, NULL, 0),
			 0);
	deliver();
	assert_int_equal(side[1].last, RNIC_CM_EV_REJECTED);
	hang_up();
}

static void test_nobody_listens(void **state)
{
	(void)state;
	side[1].answer = RNIC_CM_INVALID_SERVICE_ID;
	call();
	deliver();
	assert_int_equal(side[0].last, RNIC_CM_EV_REJECTED);
	assert_int_equal(side[0].msg.rej.reason, RNIC_CM_INVALID_SERVICE_ID);
	assert_int_equal(side[1].cm.live, 0);
	hang_up();
}

static void test_a_full_backlog_is_asked_again(void **state)
{
	(void)state;
	side[1].answer = RNIC_CM_DROP;
	call();
	deliver();
	assert_int_equal(side[1].cm.live, 0);
	assert_int_equal(side[0].events, 0);
	side[1].answer = 0;
	pass(now + 5 * SEC);
	assert_int_equal(side[1].requests, 2);
	answer();
	deliver();
	assert_int_equal(side[0].last, RNIC_CM_EV_REP);
	hang_up();
}

static void test_destroying_tells_the_peer(void **state)
{
	(void)state;
	call();
	deliver();
	rnic_cm_destroy(&side[0].cm, now, side[0].id);
	deliver();
	/* It never knew our peer's number: found by its own and its GUID. */
	assert_int_equal(side[1].last, RNIC_CM_EV_REJECTED);
	hang_up();

	setup(NULL);
	call();
	deliver();
	rnic_cm_destroy(&side[1].cm, now, side[1].id);
	deliver();
	assert_int_equal(side[0].last, RNIC_CM_EV_REJECTED);
	assert_int_equal(side[0].msg.rej.reason, RNIC_CM_CONSUMER);
	hang_up();

	setup(NULL);
	establish();
	rnic_cm_destroy(&side[1].cm, now, side[1].id);
	deliver();
	assert_int_equal(side[0].last, RNIC_CM_EV_DISCONNECTED);
	hang_up();
}

static void test_a_peer_that_is_gone_ends_a_disconnect(void **state)
{
	(void)state;
	establish();
	drop_attr = RNIC_CM_DREQ;
	drop_count = 1000;
	rnic_cm_disconnect(&side[0].cm, now, side[0].id);
	pass(now + 200 * SEC);
	assert_int_equal(side[0].last, RNIC_CM_EV_TIMEWAIT_EXIT);
	assert_int_equal(side[0].events, 3);
	drop_count = 0;
	hang_up();
}

static void test_data_may_overtake_the_rtu(void **state)
{
	(void)state;
	call();
	deliver();
	answer();
	deliver();
	assert_int_equal(rnic_cm_notify(&side[1].cm, now, side[1].id), 0);
	assert_int_equal(side[1].last, RNIC_CM_EV_ESTABLISHED);
	assert_int_equal(rnic_cm_notify(&side[1].cm, now, side[1].id), EISCONN);
	rnic_cm_ready(&side[0].cm, now, side[0].id);
	deliver();
	assert_int_equal(side[1].events, 1);
	hang_up();
}

static void test_service_ids_are_resolved(void **state)
{
	(void)state;
	rnic_cm_create(&side[0].cm, &side[0].id);
	drop_attr = RNIC_CM_SIDR_REP;
	drop_count = 1;
	rnic_cm_sidr_request(&side[0].cm, now, side[0].id, &path, SERVICE, "q",
			     2);
	deliver();
	assert_string_equal((char *)side[1].msg.private_data, "q");
	rnic_cm_sidr_reply(&side[1].cm, now, side[1].id, RNIC_CM_SIDR_OK, 0x77,
			   0x1234567, "a", 2);
	rnic_cm_destroy(&side[1].cm, now, side[1].id);
	pass(now + 5 * SEC); /* the reply was lost: asked again */
	assert_int_equal(side[1].requests, 2);
	rnic_cm_sidr_reply(&side[1].cm, now, side[1].id, RNIC_CM_SIDR_OK, 0x77,
			   0x1234567, "a", 2);
	deliver();
	assert_int_equal(side[0].last, RNIC_CM_EV_SIDR_REP);
	assert_int_equal(side[0].msg.sidr_rep.qpn, 0x77);
	assert_int_equal(side[0].msg.sidr_rep.qkey, 0x1234567);
	hang_up();

	setup(NULL);
	side[1].answer = RNIC_CM_SIDR_UNSUPPORTED;
	rnic_cm_create(&side[0].cm, &side[0].id);
	rnic_cm_sidr_request(&side[0].cm, now, side[0].id, &path, SERVICE, NULL,
			     0);
	deliver();
	assert_int_equal(side[0].msg.sidr_rep.status, RNIC_CM_SIDR_UNSUPPORTED);
	hang_up();
}

static void test_private_data_has_its_limits(void **state)
{
	struct rnic_cm_param p = param(1);

	(void)state;
	rnic_cm_create(&side[0].cm, &side[0].id);
	p.private_len = RNIC_CM_REQ_PRIVATE + 1;
	assert_int_equal(rnic_cm_connect(&side[0].cm, now, side[0].id, &path,
					 SERVICE, &p),
			 EINVAL);
	assert_int_equal(state_of(0), RNIC_CM_IDLE);
	p.private_len = RNIC_CM_REQ_PRIVATE;
	assert_int_equal(rnic_cm_connect(&side[0].cm, now, side[0].id, &path,
					 SERVICE, &p),
			 0);
	deliver();
	p.private_len = RNIC_CM_REP_PRIVATE + 1;
	assert_int_equal(rnic_cm_accept(&side[1].cm, now, side[1].id, &p),
			 EINVAL);
	assert_int_equal(rnic_cm_reject(&side[1].cm, now, side[1].id, 28, &p,
					RNIC_CM_REJ_PRIVATE + 1),
			 EINVAL);
	hang_up();
}

static void test_numbers_are_not_used_up(void **state)
{
	uint32_t id, last = 0;
	int i;

	(void)state;
	for (i = 0; i < 100000; i++) {
		assert_int_equal(rnic_cm_create(&side[0].cm, &id), 0);
		assert_int_not_equal(id, last);
		assert_int_not_equal(id, 0);
		rnic_cm_destroy(&side[0].cm, now, id);
		assert_null(rnic_cm_find(&side[0].cm, id));
		last = id;
	}
	for (i = 0; i < CONNS; i++)
		assert_int_equal(rnic_cm_create(&side[0].cm, &id), 0);
	assert_int_equal(rnic_cm_create(&side[0].cm, &id), ENOMEM);
}

static void test_without_room_a_request_is_rejected(void **state)
{
	uint32_t id;

	(void)state;
	while (!rnic_cm_create(&side[1].cm, &id))
		;
	call();
	deliver();
	assert_int_equal(side[0].last, RNIC_CM_EV_REJECTED);
	assert_int_equal(side[0].msg.rej.reason, RNIC_CM_NO_RESOURCES);
}

/* Whatever is lost and repeated, in the end both are at rest. */
static void test_any_loss_ends(void **state)
{
	uint32_t seed;

	(void)state;
	for (seed = 1; seed < 300; seed++) {
		int step;

		setup(NULL);
		srand(seed);
		call();
		for (step = 0; step < 200; step++) {
			struct rnic_cm_param p = param(0x203);

			if (queued && rand() % 3 == 0)
				memmove(queue, queue + 1,
					--queued * sizeof(queue[0]));
			if (queued && queued < 4000 && rand() % 4 == 0) {
				queue[queued] = queue[0];
				queued++;
			}
			pass(now + rand() % (3 * SEC));
			switch (rand() % 8) {
			case 0:
				rnic_cm_accept(&side[1].cm, now, side[1].id,
					       &p);
				break;
			case 1:
				rnic_cm_ready(&side[0].cm, now, side[0].id);
				break;
			case 2:
				rnic_cm_disconnect(&side[rand() & 1].cm, now,
						   side[rand() & 1].id);
				break;
			case 3:
				drop_attr = 0x10 + rand() % 9;
				drop_count = rand() % 5;
				break;
			}
		}
		hang_up();
	}
}

#define T(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_req_lies_where_table_106_says),
		T(test_rep_lies_where_table_110_says),
		T(test_short_messages_lie_where_they_should),
		T(test_what_is_packed_is_unpacked),
		T(test_what_is_no_message_is_refused),
		T(test_ip_header),
		T(test_a_connection_comes_up_and_down),
		T(test_the_request_arrives_as_it_was_sent),
		T(test_qp_attributes_fit_together),
		T(test_every_message_may_be_lost),
		T(test_nobody_answers),
		T(test_nobody_confirms),
		T(test_a_slow_program_has_its_time),
		T(test_duplicates_change_nothing),
		T(test_both_hang_up_at_once),
		T(test_a_reject_carries_its_reason_and_data),
		T(test_the_active_side_may_reject_the_reply),
		T(test_nobody_listens),
		T(test_a_full_backlog_is_asked_again),
		T(test_destroying_tells_the_peer),
		T(test_a_peer_that_is_gone_ends_a_disconnect),
		T(test_data_may_overtake_the_rtu),
		T(test_service_ids_are_resolved),
		T(test_private_data_has_its_limits),
		T(test_numbers_are_not_used_up),
		T(test_without_room_a_request_is_rejected),
		T(test_any_loss_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
