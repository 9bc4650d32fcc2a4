/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* rdma_cm as a program calls it, over cma_fake.h: two event channels. */
#ifndef UCMA_CALLS_H
#define UCMA_CALLS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <endian.h>
#include <stdio.h>

#include "cma_fake.h"

#define NOWHERE 8ull /* an address where nothing is */
#define SEC 1000000000ull

/* Values of enum rdma_cm_event_type. */
enum {
	ADDR_RESOLVED,
	ADDR_ERROR,
	ROUTE_RESOLVED,
	ROUTE_ERROR,
	CONNECT_REQUEST,
	CONNECT_RESPONSE,
	CONNECT_ERROR,
	UNREACHABLE,
	REJECTED,
	ESTABLISHED,
	DISCONNECTED,
	MULTICAST_JOIN = 12,
	MULTICAST_ERROR,
	TIMEWAIT_EXIT = 15,
	NO_EVENT = 99,
};

static int ch1, ch2; /* two programs */
static struct rdma_ucm_event_resp ev;

/* ---- commands ------------------------------------------------------------ */

static inline int command(int fd, uint32_t cmd, const void *in, uint16_t in_len,
			  uint16_t out_len)
{
	struct {
		struct rdma_ucm_cmd_hdr hdr;
		uint8_t body[512];
	} buf = {{cmd, in_len, out_len}, {0}};
	ssize_t n;

	memcpy(buf.body, in, in_len);
	n = ucma_write(&fake_ops, fd, fake_channel(fd), &buf,
		       sizeof(buf.hdr) + in_len);
	if (n < 0)
		return (int)-n;
	assert_int_equal(n, sizeof(buf.hdr) + in_len);
	return 0;
}

#define RUN(fd, cmd, in) \
	command(fd, RDMA_USER_CM_CMD_##cmd, &(in), sizeof(in), 0)
#define ASK(fd, cmd, in, out)                 \
	((in).response = (uintptr_t) & (out), \
	 command(fd, RDMA_USER_CM_CMD_##cmd, &(in), sizeof(in), sizeof(out)))

static inline uint32_t create(int fd, uint16_t ps)
{
	struct rdma_ucm_create_id cmd = {.ps = ps, .qp_type = RNIC_QPT_RC};
	struct rdma_ucm_create_id_resp resp;
	static uint64_t uid = 0x1000;

	cmd.uid = uid++;
	assert_int_equal(ASK(fd, CREATE_ID, cmd, resp), 0);
	return resp.id;
}

static inline int destroy(int fd, uint32_t id, uint32_t *events)
{
	struct rdma_ucm_destroy_id cmd = {.id = id};
	struct rdma_ucm_destroy_id_resp resp = {0};
	int err = ASK(fd, DESTROY_ID, cmd, resp);

	if (events)
		*events = resp.events_reported;
	return err;
}

static inline struct sockaddr_in ip4(const char *ip, uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET,
				 .sin_port = htons(port)};

	inet_pton(AF_INET, ip, &in.sin_addr);
	return in;
}

static inline struct sockaddr_in6 ip6(const char *ip, uint16_t port)
{
	struct sockaddr_in6 in = {.sin6_family = AF_INET6,
				  .sin6_port = htons(port)};

	inet_pton(AF_INET6, ip, &in.sin6_addr);
	return in;
}

static inline int bind_any(int fd, uint32_t id, const void *addr, uint16_t size)
{
	struct rdma_ucm_bind cmd = {.id = id, .addr_size = size};

	memcpy(&cmd.addr, addr, size);
	return RUN(fd, BIND, cmd);
}

static inline int bind4(int fd, uint32_t id, const char *ip, uint16_t port)
{
	struct sockaddr_in in = ip4(ip, port);

	return bind_any(fd, id, &in, sizeof(in));
}

static inline int listen_on(int fd, uint32_t id, uint32_t backlog)
{
	struct rdma_ucm_listen cmd = {.id = id, .backlog = backlog};

	return RUN(fd, LISTEN, cmd);
}

static inline int resolve_to(int fd, uint32_t id, const void *addr,
			     uint16_t size)
{
	struct rdma_ucm_resolve_addr cmd = {.id = id, .dst_size = size};

	memcpy(&cmd.dst_addr, addr, size);
	return RUN(fd, RESOLVE_ADDR, cmd);
}

static inline int resolve4(int fd, uint32_t id, const char *ip, uint16_t port)
{
	struct sockaddr_in in = ip4(ip, port);

	return resolve_to(fd, id, &in, sizeof(in));
}

static inline int route(int fd, uint32_t id)
{
	struct rdma_ucm_resolve_route cmd = {.id = id};

	return RUN(fd, RESOLVE_ROUTE, cmd);
}

/* The next event's type, or NO_EVENT. */
static inline uint32_t event(int fd)
{
	struct rdma_ucm_get_event cmd = {0};
	int err;

	memset(&ev, 0, sizeof(ev));
	err = ASK(fd, GET_EVENT, cmd, ev);
	if (err == EAGAIN)
		return NO_EVENT;
	assert_int_equal(err, 0);
	return ev.event;
}

static inline struct rdma_ucm_conn_param param(uint32_t qpn, uint8_t len)
{
	struct rdma_ucm_conn_param p = {
		.qp_num = qpn,
		.private_data_len = len,
		.responder_resources = 3,
		.initiator_depth = 5,
		.retry_count = 7,
		.rnr_retry_count = 6,
		.valid = 1,
	};

	memset(p.private_data, (int)qpn, len);
	return p;
}

static inline int connect_id(int fd, uint32_t id, uint32_t qpn, uint8_t len)
{
	struct rdma_ucm_connect cmd = {.id = id, .conn_param = param(qpn, len)};

	return RUN(fd, CONNECT, cmd);
}

static inline int accept_id(int fd, uint32_t id, uint32_t qpn, uint8_t len)
{
	struct rdma_ucm_accept cmd = {.id = id, .uid = 0x9000 + id};

	if (qpn)
		cmd.conn_param = param(qpn, len);
	return RUN(fd, ACCEPT, cmd);
}

static inline int reject_id(int fd, uint32_t id, uint8_t len, uint8_t reason)
{
	struct rdma_ucm_reject cmd = {.id = id,
				      .private_data_len = len,
				      .reason = reason,
				      .private_data = "sorry"};

	return RUN(fd, REJECT, cmd);
}

static inline int disconnect_id(int fd, uint32_t id)
{
	struct rdma_ucm_disconnect cmd = {.id = id};

	return RUN(fd, DISCONNECT, cmd);
}

static inline uint32_t listener(int fd, const char *ip, uint16_t port)
{
	uint32_t id = create(fd, RDMA_PS_TCP);

	assert_int_equal(bind4(fd, id, ip, port), 0);
	assert_int_equal(listen_on(fd, id, 0), 0);
	return id;
}

static inline uint32_t resolved(int fd, uint16_t ps, const char *ip,
				uint16_t port)
{
	uint32_t id = create(fd, ps);

	assert_int_equal(resolve4(fd, id, ip, port), 0);
	assert_int_equal(event(fd), ADDR_RESOLVED);
	assert_int_equal(route(fd, id), 0);
	assert_int_equal(event(fd), ROUTE_RESOLVED);
	return id;
}

/* A connection from ch2 to ch1; the passive id in *passive. */
static inline uint32_t connected(uint32_t *passive)
{
	uint32_t id = resolved(ch2, RDMA_PS_TCP, "127.0.0.1", 7000);

	assert_int_equal(connect_id(ch2, id, 0x11, 0), 0);
	assert_int_equal(event(ch1), CONNECT_REQUEST);
	*passive = ev.id;
	assert_int_equal(accept_id(ch1, *passive, 0x22, 0), 0);
	assert_int_equal(event(ch2), CONNECT_RESPONSE);
	assert_int_equal(accept_id(ch2, id, 0, 0), 0);
	assert_int_equal(event(ch1), ESTABLISHED);
	return id;
}

static inline int setup(void **state)
{
	(void)state;
	fake_begin();
	ch1 = fake_open();
	ch2 = fake_open();
	return 0;
}

static inline int teardown(void **state)
{
	struct cma_objects n;

	(void)state;
	cma_close(fake.cma, fake.now, fake_channel(ch1));
	cma_close(fake.cma, fake.now, fake_channel(ch2));
	cma_count(fake.cma, &n);
	assert_int_equal(n.ids, 0);
	assert_int_equal(n.channels, 0);
	cma_free(fake.cma);
	return 0;
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
