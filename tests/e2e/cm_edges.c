// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The edges of rdma_cm as librdmacm shows them: who is refused, with what
 * event, and what several threads and processes may do to one channel.  Each
 * case is a function; a check that fails names its line and ends the program.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#define TIMEOUT_MS 20000
#define LOOPS 1000

#define CHECK(cond)                                                        \
	do {                                                               \
		if (!(cond)) {                                             \
			fprintf(stderr, "%s:%d: %s, errno %d\n", __func__, \
				__LINE__, #cond, errno);                   \
			exit(1);                                           \
		}                                                          \
	} while (0)

static struct rdma_event_channel *server, *client;

/* ---- steps ------------------------------------------------------------- */

static struct sockaddr_in at(const char *ip, uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET,
				 .sin_port = htons(port)};

	CHECK(inet_pton(AF_INET, ip, &in.sin_addr) == 1);
	return in;
}

static struct rdma_cm_id *new_id(struct rdma_event_channel *ch)
{
	struct rdma_cm_id *id;

	CHECK(!rdma_create_id(ch, &id, NULL, RDMA_PS_TCP));
	return id;
}

static struct rdma_cm_id *bound(struct rdma_event_channel *ch, const char *ip,
				uint16_t port)
{
	struct rdma_cm_id *id = new_id(ch);
	struct sockaddr_in in = at(ip, port);

	CHECK(!rdma_bind_addr(id, (struct sockaddr *)&in));
	return id;
}

static int bind_errno(struct rdma_event_channel *ch, const char *ip,
		      uint16_t port)
{
	struct rdma_cm_id *id = new_id(ch);
	struct sockaddr_in in = at(ip, port);
	int err = rdma_bind_addr(id, (struct sockaddr *)&in) ? errno : 0;

	rdma_destroy_id(id);
	return err;
}

/* On a port that was free. */
static struct rdma_cm_id *listener(int backlog, uint16_t *port)
{
	struct rdma_cm_id *id = bound(server, "127.0.0.1", 0);

	CHECK(!rdma_listen(id, backlog));
	*port = ntohs(rdma_get_src_port(id));
	CHECK(*port);
	return id;
}

static struct rdma_cm_event *next(struct rdma_event_channel *ch)
{
	struct pollfd p = {.fd = ch->fd, .events = POLLIN};
	struct rdma_cm_event *ev;

	CHECK(poll(&p, 1, TIMEOUT_MS) == 1);
	CHECK(!rdma_get_cm_event(ch, &ev));
	return ev;
}

static struct rdma_cm_id *expect(struct rdma_event_channel *ch,
				 enum rdma_cm_event_type type)
{
	struct rdma_cm_event *ev = next(ch);
	struct rdma_cm_id *id = ev->id;

	if (ev->event != type)
		fprintf(stderr, "%s instead of %s\n", rdma_event_str(ev->event),
			rdma_event_str(type));
	CHECK(ev->event == type);
	rdma_ack_cm_event(ev);
	return id;
}

static bool quiet(struct rdma_event_channel *ch)
{
	struct pollfd p = {.fd = ch->fd, .events = POLLIN};

	return poll(&p, 1, 0) == 0;
}

static struct rdma_cm_id *resolved(struct rdma_event_channel *ch, uint16_t port)
{
	struct rdma_cm_id *id = new_id(ch);
	struct sockaddr_in in = at("127.0.0.1", port);

	CHECK(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&in, 2000));
	CHECK(expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED) == id);
	CHECK(!rdma_resolve_route(id, 2000));
	CHECK(expect(ch, RDMA_CM_EVENT_ROUTE_RESOLVED) == id);
	return id;
}

/* Without a QP of ours: the number is anybody's. */
static int connect_len(struct rdma_cm_id *id, uint8_t len)
{
	static uint8_t data[255];
	struct rdma_conn_param param = {
		.qp_num = 77, .private_data = data, .private_data_len = len};

	return rdma_connect(id, &param);
}

static int accept_len(struct rdma_cm_id *id, uint8_t len)
{
	static uint8_t data[255];
	struct rdma_conn_param param = {
		.qp_num = 78, .private_data = data, .private_data_len = len};

	/* Only with a QP does the library ask for one. */
	return rdma_accept(id, &param);
}

struct link {
	struct rdma_cm_id *active, *passive;
};

static struct link established(uint16_t port)
{
	struct link l = {.active = resolved(client, port)};

	CHECK(!connect_len(l.active, 0));
	l.passive = expect(server, RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK(!accept_len(l.passive, 0));
	expect(client, RDMA_CM_EVENT_CONNECT_RESPONSE);
	CHECK(!rdma_establish(l.active));
	CHECK(expect(server, RDMA_CM_EVENT_ESTABLISHED) == l.passive);
	return l;
}

/* ---- cases --------------------------------------------------------------- */

static void ports(void)
{
	struct rdma_cm_id *a = bound(server, "127.0.0.1", 0), *b;
	uint16_t port = ntohs(rdma_get_src_port(a));

	CHECK(port >= 1024);
	CHECK(bind_errno(server, "127.0.0.1", port) == EADDRINUSE);
	/* Another channel is no other port space, another address is free. */
	CHECK(bind_errno(client, "127.0.0.1", port) == EADDRINUSE);
	CHECK(bind_errno(server, "127.0.0.2", port) == 0);
	CHECK(bind_errno(server, "0.0.0.0", port) == EADDRNOTAVAIL);
	CHECK(bind_errno(server, "198.51.100.7", 0) == EADDRNOTAVAIL);
	rdma_destroy_id(a);
	CHECK(bind_errno(server, "127.0.0.1", port) == 0);
	/* The specific listener is asked before the one for all. */
	a = bound(server, "127.0.0.2", 0);
	b = bound(server, "0.0.0.0", 0);
	CHECK(rdma_get_src_port(a) != rdma_get_src_port(b));
	rdma_destroy_id(a);
	rdma_destroy_id(b);
}

static void private_data(void)
{
	struct rdma_cm_id *a, *l, *p;
	struct rdma_cm_event *ev;
	uint16_t port;

	l = listener(0, &port);
	a = resolved(client, port);
	CHECK(connect_len(a, 57) && errno == EINVAL);
	CHECK(!connect_len(a, 56));
	ev = next(server);
	CHECK(ev->event == RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK(ev->param.conn.private_data_len == 56);
	p = ev->id;
	rdma_ack_cm_event(ev);
	/* Who cannot be answered is refused. */
	CHECK(accept_len(p, 197) && errno == EINVAL);
	CHECK(expect(client, RDMA_CM_EVENT_REJECTED) == a);
	rdma_destroy_id(p);
	rdma_destroy_id(a);

	a = resolved(client, port);
	CHECK(!connect_len(a, 0));
	p = expect(server, RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK(rdma_reject(p, "no", 149) && errno == EINVAL);
	CHECK(!rdma_reject(p, "no", 3));
	ev = next(client);
	CHECK(ev->event == RDMA_CM_EVENT_REJECTED && ev->status == 28);
	CHECK(!strcmp(ev->param.conn.private_data, "no"));
	rdma_ack_cm_event(ev);
	rdma_destroy_id(p);
	rdma_destroy_id(a);
	rdma_destroy_id(l);
}

static void backlog(void)
{
	struct rdma_cm_id *l, *a, *b, *p;
	uint16_t port;

	l = listener(1, &port);
	a = resolved(client, port);
	b = resolved(client, port);
	CHECK(!connect_len(a, 0));
	CHECK(!connect_len(b, 0));
	/* The second one asks again, when there is room. */
	p = expect(server, RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK(quiet(server) && quiet(client));
	CHECK(!rdma_reject(p, NULL, 0));
	rdma_destroy_id(p);
	CHECK(expect(client, RDMA_CM_EVENT_REJECTED) == a);
	p = expect(server, RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK(!accept_len(p, 0));
	CHECK(expect(client, RDMA_CM_EVENT_CONNECT_RESPONSE) == b);
	rdma_destroy_id(p);
	rdma_destroy_id(a);
	rdma_destroy_id(b);
	rdma_destroy_id(l);
}

static void listener_with_requests(void)
{
	struct rdma_cm_id *l, *a;
	uint16_t port;

	l = listener(0, &port);
	a = resolved(client, port);
	CHECK(!connect_len(a, 0));
	rdma_destroy_id(l);
	CHECK(expect(client, RDMA_CM_EVENT_REJECTED) == a);
	rdma_destroy_id(a);
	CHECK(quiet(server));
}

/* The child listens, and is killed with the request in its queue. */
static void server_killed(void)
{
	struct rdma_cm_id *a;
	int fd[2];
	uint16_t port;
	pid_t pid;

	CHECK(!pipe(fd));
	pid = fork();
	if (!pid) {
		server = rdma_create_event_channel();
		CHECK(server);
		listener(0, &port);
		CHECK(write(fd[1], &port, sizeof(port)) == sizeof(port));
		pause();
		_exit(1);
	}
	CHECK(read(fd[0], &port, sizeof(port)) == sizeof(port));
	a = resolved(client, port);
	CHECK(!connect_len(a, 0));
	CHECK(quiet(client));
	CHECK(!kill(pid, SIGKILL));
	CHECK(waitpid(pid, NULL, 0) == pid);
	CHECK(expect(client, RDMA_CM_EVENT_REJECTED) == a);
	rdma_destroy_id(a);
	/* Its port is free, and nobody is there. */
	a = resolved(client, port);
	CHECK(!connect_len(a, 0));
	CHECK(expect(client, RDMA_CM_EVENT_REJECTED) == a);
	rdma_destroy_id(a);
	CHECK(bind_errno(client, "127.0.0.1", port) == 0);
	close(fd[0]);
	close(fd[1]);
}

static void hang_up(void)
{
	struct rdma_cm_id *l;
	struct link k;
	uint16_t port;

	l = listener(0, &port);
	k = established(port);
	/* The id is gone: its peer hears of it. */
	rdma_destroy_id(k.active);
	CHECK(expect(server, RDMA_CM_EVENT_DISCONNECTED) == k.passive);
	rdma_destroy_id(k.passive);
	rdma_destroy_id(l);
}

static void non_blocking(void)
{
	struct epoll_event got, want = {.events = EPOLLIN};
	int flags = fcntl(client->fd, F_GETFL), ep = epoll_create1(0);
	struct sockaddr_in in = at("127.0.0.1", 7999);
	struct rdma_cm_id *id = new_id(client);
	struct rdma_cm_event *ev;

	CHECK(ep >= 0 && flags >= 0);
	CHECK(!epoll_ctl(ep, EPOLL_CTL_ADD, client->fd, &want));
	CHECK(!fcntl(client->fd, F_SETFL, flags | O_NONBLOCK));
	CHECK(rdma_get_cm_event(client, &ev) == -1 && errno == EAGAIN);
	CHECK(epoll_wait(ep, &got, 1, 0) == 0);
	CHECK(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&in, 2000));
	CHECK(epoll_wait(ep, &got, 1, TIMEOUT_MS) == 1);
	expect(client, RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(epoll_wait(ep, &got, 1, 0) == 0);
	CHECK(rdma_get_cm_event(client, &ev) == -1 && errno == EAGAIN);
	/* Events of an id that is destroyed leave no false alarm. */
	CHECK(!rdma_resolve_route(id, 2000));
	rdma_destroy_id(id);
	CHECK(epoll_wait(ep, &got, 1, 0) == 0);
	CHECK(!fcntl(client->fd, F_SETFL, flags));
	close(ep);
}

#define READERS 2
#define EVENTS 200

static void *take(void *arg)
{
	struct rdma_cm_event *ev;
	long n = 0;

	(void)arg;
	for (;;) {
		CHECK(!rdma_get_cm_event(client, &ev));
		n++;
		/* The mark is the address of nobody. */
		if (ev->event == RDMA_CM_EVENT_ADDR_ERROR)
			break;
		CHECK(ev->event == RDMA_CM_EVENT_ADDR_RESOLVED);
		rdma_ack_cm_event(ev);
	}
	rdma_ack_cm_event(ev);
	return (void *)n;
}

/* Each event is taken by one of them. */
static void two_readers(void)
{
	struct sockaddr_in here = at("127.0.0.1", 7999),
			   nobody = at("198.51.100.7", 7999);
	struct rdma_cm_id *id[EVENTS + READERS];
	pthread_t thread[READERS];
	long all = 0;
	void *n;
	int i;

	for (i = 0; i < READERS; i++)
		CHECK(!pthread_create(&thread[i], NULL, take, NULL));
	for (i = 0; i < EVENTS + READERS; i++) {
		struct sockaddr_in *to = i < EVENTS ? &here : &nobody;

		id[i] = new_id(client);
		CHECK(!rdma_resolve_addr(id[i], NULL, (struct sockaddr *)to,
					 2000));
	}
	for (i = 0; i < READERS; i++) {
		CHECK(!pthread_join(thread[i], &n));
		all += (long)n;
	}
	CHECK(all == EVENTS + READERS);
	CHECK(quiet(client));
	for (i = 0; i < EVENTS + READERS; i++)
		CHECK(!rdma_destroy_id(id[i]));
}

/* With what waits for it. */
static void migrate(void)
{
	struct sockaddr_in in = at("127.0.0.1", 7999);
	struct rdma_cm_id *id = new_id(client);

	CHECK(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&in, 2000));
	CHECK(!rdma_migrate_id(id, server));
	CHECK(quiet(client));
	CHECK(expect(server, RDMA_CM_EVENT_ADDR_RESOLVED) == id);
	CHECK(!rdma_migrate_id(id, client));
	CHECK(!rdma_resolve_route(id, 2000));
	CHECK(expect(client, RDMA_CM_EVENT_ROUTE_RESOLVED) == id);
	CHECK(quiet(server));
	rdma_destroy_id(id);
}

/* A child that ends takes nothing with it; it may look at the channel. */
static void forked(void)
{
	struct rdma_cm_id *l;
	struct link k;
	int status;
	uint16_t port;
	pid_t pid;

	l = listener(0, &port);
	k = established(port);
	pid = fork();
	if (!pid)
		_exit(quiet(server) ? 0 : 1);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
	CHECK(quiet(server) && quiet(client));
	rdma_destroy_id(k.passive);
	CHECK(expect(client, RDMA_CM_EVENT_DISCONNECTED) == k.active);
	rdma_destroy_id(k.active);
	rdma_destroy_id(l);
}

static void notify(void)
{
	struct rdma_cm_id *l, *a, *p;
	uint16_t port;

	l = listener(0, &port);
	a = resolved(client, port);
	CHECK(rdma_notify(a, IBV_EVENT_COMM_EST) && errno == EINVAL);
	CHECK(!connect_len(a, 0));
	p = expect(server, RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK(!accept_len(p, 0));
	expect(client, RDMA_CM_EVENT_CONNECT_RESPONSE);
	/* Data has come before the RTU: established all the same, once. */
	CHECK(!rdma_notify(p, IBV_EVENT_COMM_EST));
	CHECK(expect(server, RDMA_CM_EVENT_ESTABLISHED) == p);
	CHECK(!rdma_establish(a));
	CHECK(quiet(server));
	rdma_destroy_id(a);
	CHECK(expect(server, RDMA_CM_EVENT_DISCONNECTED) == p);
	rdma_destroy_id(p);
	rdma_destroy_id(l);
}

static void many(void)
{
	struct rdma_cm_id *l;
	struct link k;
	uint16_t port;
	int i;

	l = listener(0, &port);
	for (i = 0; i < LOOPS; i++) {
		k = established(port);
		rdma_destroy_id(k.active);
		CHECK(expect(server, RDMA_CM_EVENT_DISCONNECTED) == k.passive);
		rdma_destroy_id(k.passive);
	}
	rdma_destroy_id(l);
}

static const struct {
	const char *what;
	void (*run)(void);
} cases[] = {
	{"ports: allocated, in use, wildcards", ports},
	{"private data at its limits, and beyond", private_data},
	{"a full backlog makes the peer ask again", backlog},
	{"a listener refuses what it has not offered", listener_with_requests},
	{"a server that is killed while a client connects", server_killed},
	{"an id that is destroyed hangs up", hang_up},
	{"channels that do not block, with epoll", non_blocking},
	{"two threads take each event once", two_readers},
	{"an id moves with its events", migrate},
	{"a child that ends changes nothing", forked},
	{"rdma_notify: established before the RTU", notify},
	{"1,000 connections", many},
};

int main(void)
{
	size_t i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		server = rdma_create_event_channel();
		client = rdma_create_event_channel();
		CHECK(server && client);
		cases[i].run();
		CHECK(quiet(server) && quiet(client));
		rdma_destroy_event_channel(server);
		rdma_destroy_event_channel(client);
		printf("ok      %s\n", cases[i].what);
	}
	printf("%zu cases, all right\n", i);
	return 0;
}
