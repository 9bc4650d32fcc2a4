/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sfnicd: owner of the arena, control plane, janitor, keeper of timers.  One
 * thread, one loop; never between two programs' data.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/un.h>
#include "softnic/build_id.h"
#include "softnic/daemon_cm.h"
#include "softnic/files.h"
#include "softnic/host.h"
#include "softnic/options.h"
#include "softnic/pages.h"
#include "softnic/raw.h"
#include "softnic/tree.h"
#include "softnic/wire.h"

/* What an epoll event is about: kind in the high half, index in the low. */
enum source {
	SRC_LISTEN,
	SRC_KICK,
	SRC_CONN,
	SRC_LIFE,
	SRC_PIPE,
	SRC_CM,
};

#define MAX_CONN 4096
#define MAX_PENDING (RNIC_MAX_CQ + RNIC_MAX_SRQ + RNIC_MAX_QP)

struct conn {
	int fd;		/* -1: free */
	uint32_t space; /* index; 0: has not said hello */
	bool watch;
};

struct space {
	uint32_t id; /* 0: free */
	uint32_t last_id;
	int mem_fd;
	int maps_fd;
	int pid;
};

struct context {
	uint32_t id;
	uint32_t last_id;
	uint32_t dev;
	int life;
	int async;
	uint32_t full; /* deliver_pending() that found it full */
	bool zombie;   /* ended, but some of its objects cannot go yet */
};

/* Memory of one region that is a file. */
struct file {
	uint32_t space; /* its number; 0: free */
	uint32_t last_space;
	uint32_t ctx;
	uint32_t key;
	int fd;
};

struct channel {
	uint32_t id;
	uint32_t last_id;
	uint32_t ctx;
	uint32_t full; /* as in a context */
	int fd;
};

/* An event for which the pipe was full, so many times. */
struct pending {
	struct rnic_event event;
	uint32_t count;
};

/* Pages that a process has taken for registered memory. */
struct block {
	uint64_t off, len;
	uint32_t space;
	struct block *next;
};

static struct {
	struct sfnic_options opt;
	const char *dir;
	struct rnic rnic;
	struct sfnic_host host;
	void *base;
	int arena_fd;
	int epoll;
	int listen;
	int reserve; /* a descriptor for when there are no more */
	int down;
	uint64_t unused_since; /* 0: in use */
	struct conn conn[MAX_CONN];
	struct space space[SFNIC_MAX_SPACE];
	struct context ctx[SFNIC_MAX_CTX];
	struct channel channel[SFNIC_MAX_CHANNEL];
	struct file file[SFNIC_MAX_FILE];
	struct block *blocks;
	struct pending pending[MAX_PENDING];
	uint32_t pendings;
	/*
	 * What the domains are named by: kept, so that no other file gets the
	 * name.  -1: none.
	 */
	int xrcd_fd[RNIC_MAX_XRCD];
} d;

/* ---- small tables --------------------------------------------------- */

/* Same index, new number. */
static uint32_t new_id(uint32_t last, uint32_t index)
{
	uint32_t step = 1u << SFNIC_INDEX_BITS;

	return (((last & ~(step - 1)) + step) & 0x7fffffff) | index;
}

static struct context *ctx_get(uint32_t index)
{
	return index && index < SFNIC_MAX_CTX && d.ctx[index].id ?
		       &d.ctx[index] :
		       NULL;
}

static struct channel *channel_get(uint32_t id)
{
	struct channel *c = &d.channel[SFNIC_INDEX(id) % SFNIC_MAX_CHANNEL];

	return id && c->id == id ? c : NULL;
}

static struct space *space_get(uint32_t id)
{
	struct space *s = &d.space[SFNIC_INDEX(id) % SFNIC_MAX_SPACE];

	return id && s->id == id ? s : NULL;
}

static int watch_fd(int fd, enum source source, uint32_t index, uint32_t events)
{
	struct epoll_event ev = {
		.events = events,
		.data.u64 = (uint64_t)source << 32 | index,
	};

	return epoll_ctl(d.epoll, EPOLL_CTL_ADD, fd, &ev) ? errno : 0;
}

static uint32_t users(void)
{
	uint32_t i, n = 0;

	for (i = 1; i < SFNIC_MAX_SPACE; i++)
		n += d.space[i].id != 0;
	return n;
}

/* Who is connected may open a device at any time, also after hours. */
static bool in_use(void)
{
	uint32_t i;

	for (i = 1; i < SFNIC_MAX_CTX; i++)
		if (d.ctx[i].id)
			return true;
	return users();
}

/* ---- host of the RNIC core ------------------------------------------ */

static int daemon_get_fd(uint32_t kind, uint32_t id)
{
	struct channel *channel;
	struct context *ctx;
	struct space *space;
	struct file *file;

	switch (kind) {
	case SFNIC_FD_CHANNEL:
		channel = channel_get(id);
		return channel ? channel->fd : -1;
	case SFNIC_FD_ASYNC:
		ctx = ctx_get(id);
		return ctx ? ctx->async : -1;
	case SFNIC_FD_MEM:
		space = space_get(id);
		return space ? space->mem_fd : -1;
	case SFNIC_FD_MAPS:
		space = space_get(id);
		return space ? space->maps_fd : -1;
	case SFNIC_FD_FILE:
		file = &d.file[SFNIC_INDEX(id) % SFNIC_MAX_FILE];
		return file->space == id ? file->fd : -1;
	case SFNIC_FD_KICK:
		return d.host.kick_fd;
	}
	return -1;
}

static int event_fd(const struct rnic_event *event)
{
	bool comp = event->type == RNIC_EVENT_COMPLETION;

	return daemon_get_fd(comp ? SFNIC_FD_CHANNEL : SFNIC_FD_ASYNC,
			     comp ? event->channel : event->ctx);
}

/*
 * Equal events are one entry with a count, so there are as many entries as
 * objects that have something to tell, however much nobody reads.
 */
static void event_later(const struct rnic_event *event)
{
	struct pending *p;
	uint32_t i;

	for (i = 0; i < d.pendings; i++) {
		p = &d.pending[i];
		if (p->event.type == event->type &&
		    p->event.ctx == event->ctx &&
		    p->event.channel == event->channel &&
		    p->event.element == event->element) {
			p->count++;
			return;
		}
	}
	if (d.pendings < MAX_PENDING)
		d.pending[d.pendings++] = (struct pending){*event, 1};
}

static uint32_t *full_mark(const struct rnic_event *event)
{
	return event->type == RNIC_EVENT_COMPLETION ?
		       &channel_get(event->channel)->full :
		       &ctx_get(event->ctx)->full;
}

/* In the order in which they came: none overtakes in a pipe that was full. */
static void deliver_pending(void)
{
	static uint32_t round;
	uint32_t i, kept = 0;

	round++;
	for (i = 0; i < d.pendings; i++) {
		struct pending p = d.pending[i];
		int fd = event_fd(&p.event);
		uint32_t *full = fd < 0 ? NULL : full_mark(&p.event);

		while (p.count && fd >= 0 && *full != round) {
			if (sfnic_event_write(fd, &p.event) == EAGAIN)
				*full = round;
			else
				p.count--;
		}
		if (p.count && fd >= 0)
			d.pending[kept++] = p;
	}
	d.pendings = kept;
}

/* Events of an object that goes; how many of them were completions. */
static uint32_t drop_pending(uint32_t ctx, uint64_t element, bool comp)
{
	uint32_t i, kept = 0, dropped = 0;

	for (i = 0; i < d.pendings; i++) {
		const struct rnic_event *e = &d.pending[i].event;

		if (e->ctx == ctx && e->element == element &&
		    (e->type == RNIC_EVENT_COMPLETION) == comp)
			dropped += d.pending[i].count;
		else
			d.pending[kept++] = d.pending[i];
	}
	d.pendings = kept;
	return dropped;
}

static uint64_t daemon_mem_alloc(void *host, uint64_t len)
{
	(void)host;
	return pages_alloc(len);
}

static void daemon_mem_free(void *host, uint64_t off, uint64_t len)
{
	(void)host;
	pages_free(off, len);
}

static struct rnic_host_ops daemon_ops;

/* ---- processes ------------------------------------------------------ */

static void free_blocks(uint32_t space)
{
	struct block **p = &d.blocks;

	while (*p) {
		struct block *b = *p;

		if (b->space != space) {
			p = &b->next;
			continue;
		}
		pages_free(b->off, b->len);
		*p = b->next;
		free(b);
	}
}

/* Files whose regions are gone. */
static void close_files(void)
{
	struct rnic_mr_attr attr;
	uint32_t i;

	for (i = 1; i < SFNIC_MAX_FILE; i++) {
		struct file *f = &d.file[i];

		if (!f->space || !rnic_mr_query(&d.rnic, f->ctx, f->key, &attr))
			continue;
		files_forget(f->space);
		close(f->fd);
		f->space = 0;
	}
}

/*
 * A process has ended (or left its image by exec): what it held locked is
 * mended, its memory is nobody's.  Its contexts end with their life lines.
 */
static void space_end(uint32_t index)
{
	struct space *s = &d.space[index];
	uint32_t id = s->id;

	if (!id)
		return;
	rnic_repair(&d.rnic);
	rnic_space_reap(&d.rnic, id);
	free_blocks(id);
	if (s->mem_fd >= 0)
		close(s->mem_fd);
	if (s->maps_fd >= 0)
		close(s->maps_fd);
	s->id = 0;
}

static void conn_close(uint32_t index)
{
	struct conn *c = &d.conn[index];
	uint32_t space = c->space;
	bool watch = c->watch;

	close(c->fd);
	*c = (struct conn){.fd = -1};
	if (space && !watch) {
		space_end(space);
		daemon_cm_sync();
	}
}

/* No descriptor left: he shall know rather than wait. */
static void turn_away(void)
{
	close(d.reserve);
	close(accept4(d.listen, NULL, NULL, SOCK_CLOEXEC));
	d.reserve = fcntl(d.epoll, F_DUPFD_CLOEXEC, 0);
}

static void conn_accept(void)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	uint32_t i;
	int fd = accept4(d.listen, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0 && errno == EMFILE)
		turn_away();
	if (fd < 0)
		return;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) ||
	    (cred.uid != getuid() && cred.uid != 0)) {
		close(fd);
		return;
	}
	for (i = 0; i < MAX_CONN && d.conn[i].fd >= 0; i++)
		;
	if (i == MAX_CONN || watch_fd(fd, SRC_CONN, i, EPOLLIN)) {
		close(fd);
		return;
	}
	d.conn[i] = (struct conn){.fd = fd};
}

/* ---- contexts ------------------------------------------------------- */

static void channels_close(uint32_t ctx)
{
	uint32_t i;

	for (i = 1; i < SFNIC_MAX_CHANNEL; i++) {
		if (!d.channel[i].id || d.channel[i].ctx != ctx)
			continue;
		close(d.channel[i].fd);
		d.channel[i].id = 0;
	}
}

static void close_xrcd_files(void)
{
	uint32_t i;

	for (i = 0; i < RNIC_MAX_XRCD; i++) {
		if (d.xrcd_fd[i] < 0 || rnic_xrcd_live(&d.rnic, i))
			continue;
		close(d.xrcd_fd[i]);
		d.xrcd_fd[i] = -1;
	}
}

/*
 * An object whose lock is held by a process that is stopped cannot go yet: its
 * context stays, and is visited again.
 */
static void ctx_reap(uint32_t index)
{
	struct context *c = &d.ctx[index];

	bool gone = rnic_ctx_reap(&d.rnic, index);

	close_xrcd_files();
	if (!gone) {
		c->zombie = true;
		return;
	}
	c->zombie = false;
	c->id = 0;
	close_files();
}

static void ctx_end(uint32_t index)
{
	struct context *c = ctx_get(index);

	if (!c || c->zombie)
		return;
	close(c->life);
	rnic_repair(&d.rnic);
	rnic_ctx_orphan_peers(&d.rnic, index);
	channels_close(index);
	if (c->async >= 0)
		close(c->async);
	c->async = -1;
	ctx_reap(index);
}

static bool reap_zombies(void)
{
	bool any = false;
	uint32_t i;

	for (i = 1; i < SFNIC_MAX_CTX; i++) {
		if (!d.ctx[i].id || !d.ctx[i].zombie)
			continue;
		ctx_reap(i);
		any |= d.ctx[i].zombie;
	}
	return any;
}

/* ---- operations ----------------------------------------------------- */

/* One request being answered. */
struct call {
	struct conn *conn;
	const struct sfnic_req *req;
	struct sfnic_rsp *rsp;
	struct context *ctx;
	int fd;	      /* came with it; an operation that keeps it sets -1 */
	int reply_fd; /* goes back, stays ours */
};

static int op_hello(struct call *c)
{
	uint32_t i;
	struct space *s;

	if (c->req->hello.version != SFNIC_PROTO_VERSION ||
	    c->req->hello.build != SFNIC_BUILD_ID)
		return EPROTO;
	if (c->conn->space)
		return EINVAL;
	for (i = 1; i < SFNIC_MAX_SPACE && d.space[i].id; i++)
		;
	if (i == SFNIC_MAX_SPACE)
		return EUSERS;
	s = &d.space[i];
	s->id = s->last_id = new_id(s->last_id, i);
	s->mem_fd = c->fd;
	s->maps_fd = -1;
	s->pid = c->req->hello.pid;
	c->fd = -1;
	c->conn->space = i;
	c->rsp->id = s->id;
	c->rsp->arena.size = d.opt.arena_size;
	c->rsp->arena.daemon_pid = getpid();
	c->reply_fd = d.arena_fd;
	return 0;
}

static int op_watch(struct call *c)
{
	struct space *s = space_get(c->req->id);

	if (!s || c->conn->space)
		return EINVAL;
	c->conn->space = SFNIC_INDEX(s->id);
	c->conn->watch = true;
	return 0;
}

static int op_open(struct call *c)
{
	struct context *ctx;
	uint32_t i;

	if (c->req->open.dev >= rnic_devices(&d.rnic))
		return EINVAL;
	if (c->fd < 0)
		return EMFILE; /* it was sent, there was no room for it */
	for (i = 1; i < SFNIC_MAX_CTX && d.ctx[i].id; i++)
		;
	if (i == SFNIC_MAX_CTX)
		return EMFILE;
	ctx = &d.ctx[i];
	if (watch_fd(c->fd, SRC_LIFE, i, EPOLLRDHUP))
		return ENOMEM;
	ctx->id = ctx->last_id = new_id(ctx->last_id, i);
	__atomic_store_n(&d.host.shared->ctx_id[i], ctx->id, __ATOMIC_RELEASE);
	ctx->dev = c->req->open.dev;
	ctx->life = c->fd;
	ctx->async = -1;
	ctx->zombie = false;
	c->fd = -1;
	c->rsp->id = ctx->id;
	return 0;
}

static int op_alloc_pd(struct call *c)
{
	return rnic_pd_create(&d.rnic, c->req->ctx, c->ctx->dev, &c->rsp->id);
}

static int op_dealloc_pd(struct call *c)
{
	return rnic_pd_destroy(&d.rnic, c->req->ctx, c->req->id);
}

static int op_reg_mr(struct call *c)
{
	struct rnic_mr_attr attr = c->req->mr;

	if (attr.space != RNIC_SPACE_NULL)
		attr.space = d.space[c->conn->space].id;
	return rnic_mr_create(&d.rnic, c->req->ctx, &attr, &c->rsp->id);
}

static int op_rereg_mr(struct call *c)
{
	struct rnic_mr_attr attr = c->req->rereg_mr.attr;

	attr.space = d.space[c->conn->space].id;
	return rnic_mr_modify(&d.rnic, c->req->ctx, c->req->rereg_mr.key,
			      c->req->rereg_mr.mask, &attr);
}

static int op_dereg_mr(struct call *c)
{
	int err = rnic_mr_destroy(&d.rnic, c->req->ctx, c->req->id);

	if (!err)
		close_files();
	return err;
}

static int op_reg_file_mr(struct call *c)
{
	struct rnic_mr_attr attr = c->req->mr;
	struct file *f;
	uint32_t i;
	int err;

	if (c->fd < 0)
		return EMFILE; /* it was sent, there was no room for it */
	for (i = 1; i < SFNIC_MAX_FILE && d.file[i].space; i++)
		;
	if (i == SFNIC_MAX_FILE)
		return ENOMEM;
	f = &d.file[i];
	attr.space = new_id(f->last_space, i) | SFNIC_SPACE_FILE;
	err = rnic_mr_create(&d.rnic, c->req->ctx, &attr, &c->rsp->id);
	if (err)
		return err;
	f->space = f->last_space = attr.space;
	f->ctx = c->req->ctx;
	f->key = c->rsp->id;
	f->fd = c->fd;
	c->fd = -1;
	return 0;
}

static int op_alloc_mw(struct call *c)
{
	return rnic_mw_create(&d.rnic, c->req->ctx, c->req->alloc_mw.pdn,
			      c->req->alloc_mw.type, &c->rsp->id);
}

static int op_dealloc_mw(struct call *c)
{
	return rnic_mw_destroy(&d.rnic, c->req->ctx, c->req->id);
}

static int op_alloc_dm(struct call *c)
{
	uint64_t off;

	return rnic_dm_create(&d.rnic, c->req->ctx, c->ctx->dev,
			      c->req->alloc_dm.len, &c->rsp->id, &off);
}

static int op_free_dm(struct call *c)
{
	return rnic_dm_destroy(&d.rnic, c->req->ctx, c->req->id);
}

static int op_set_maps(struct call *c)
{
	struct space *s = &d.space[c->conn->space];

	if (c->fd < 0)
		return EMFILE; /* it was sent, there was no room for it */
	if (s->maps_fd >= 0)
		close(s->maps_fd);
	s->maps_fd = c->fd;
	c->fd = -1;
	return 0;
}

static int op_channel(struct call *c)
{
	struct channel *channel;
	uint32_t i;

	if (c->fd < 0)
		return EMFILE;
	for (i = 1; i < SFNIC_MAX_CHANNEL && d.channel[i].id; i++)
		;
	if (i == SFNIC_MAX_CHANNEL)
		return ENOMEM;
	channel = &d.channel[i];
	channel->id = channel->last_id = new_id(channel->last_id, i);
	channel->ctx = c->req->ctx;
	channel->fd = c->fd;
	c->fd = -1;
	c->rsp->id = channel->id;
	return 0;
}

static int op_async(struct call *c)
{
	if (c->fd < 0)
		return EMFILE;
	/* Who imports the context gets one, too, but the first is told. */
	if (c->ctx->async >= 0)
		return 0;
	c->ctx->async = c->fd;
	c->fd = -1;
	return 0;
}

static int op_create_cq(struct call *c)
{
	struct rnic_cq_attr attr = c->req->cq;

	attr.dev = c->ctx->dev;
	if (attr.channel && !channel_get(attr.channel))
		return EINVAL;
	return rnic_cq_create(&d.rnic, c->req->ctx, &attr, &c->rsp->id,
			      &c->rsp->cq.mem);
}

static int op_resize_cq(struct call *c)
{
	return rnic_cq_resize(&d.rnic, c->req->ctx, c->req->resize_cq.cqn,
			      c->req->resize_cq.log_depth, &c->rsp->cq.mem);
}

static int op_moderate_cq(struct call *c)
{
	return rnic_cq_moderate(&d.rnic, c->req->ctx, c->req->moderate_cq.cqn,
				c->req->moderate_cq.count,
				c->req->moderate_cq.period);
}

static int op_destroy_cq(struct call *c)
{
	uint64_t element = rnic_cq_user_handle(&d.rnic, c->req->id);
	int err = rnic_cq_destroy(&d.rnic, c->req->ctx, c->req->id,
				  &c->rsp->destroyed.comp_events,
				  &c->rsp->destroyed.async_events);

	if (err)
		return err;
	c->rsp->destroyed.comp_events -=
		drop_pending(c->req->ctx, element, true);
	c->rsp->destroyed.async_events -=
		drop_pending(c->req->ctx, element, false);
	return 0;
}

static int op_create_ah(struct call *c)
{
	return rnic_ah_create(&d.rnic, c->req->ctx, c->ctx->dev,
			      c->req->create_ah.pdn, &c->req->create_ah.av,
			      &c->rsp->id);
}

static int op_destroy_ah(struct call *c)
{
	return rnic_ah_destroy(&d.rnic, c->req->ctx, c->req->id);
}

static int op_attach_mcast(struct call *c)
{
	return rnic_mcast_attach(&d.rnic, c->req->ctx, c->req->mcast.qpn,
				 c->req->mcast.mgid, c->req->mcast.mlid);
}

static int op_detach_mcast(struct call *c)
{
	return rnic_mcast_detach(&d.rnic, c->req->ctx, c->req->mcast.qpn,
				 c->req->mcast.mgid, c->req->mcast.mlid);
}

static int op_create_srq(struct call *c)
{
	struct rnic_srq_attr attr = c->req->srq;

	attr.dev = c->ctx->dev;
	return rnic_srq_create(&d.rnic, c->req->ctx, &attr, &c->rsp->id,
			       &c->rsp->srq.mem);
}

static int op_modify_srq(struct call *c)
{
	if (c->req->modify_srq.resize)
		return rnic_srq_resize(&d.rnic, c->req->ctx,
				       c->req->modify_srq.srqn,
				       c->req->modify_srq.log_depth,
				       &c->rsp->srq.mem);
	return rnic_srq_set_limit(&d.rnic, c->req->ctx, c->req->modify_srq.srqn,
				  c->req->modify_srq.limit);
}

static int op_query_srq(struct call *c)
{
	return rnic_srq_query(&d.rnic, c->req->ctx, c->req->id,
			      &c->rsp->srq.attr);
}

static int op_destroy_srq(struct call *c)
{
	struct rnic_srq_attr attr;
	int err = rnic_srq_query(&d.rnic, c->req->ctx, c->req->id, &attr);

	if (!err)
		err = rnic_srq_destroy(&d.rnic, c->req->ctx, c->req->id,
				       &c->rsp->destroyed.async_events);
	if (!err)
		c->rsp->destroyed.async_events -=
			drop_pending(c->req->ctx, attr.user_handle, false);
	return err;
}

static int op_create_qp(struct call *c)
{
	struct rnic_qp_init init = c->req->qp;

	init.dev = c->ctx->dev;
	init.space = d.space[c->conn->space].id;
	return rnic_qp_create(&d.rnic, c->req->ctx, &init, &c->rsp->id,
			      &c->rsp->qp.mem);
}

static int op_modify_qp(struct call *c)
{
	return rnic_qp_modify(&d.rnic, c->req->ctx, c->req->modify_qp.qpn,
			      &c->req->modify_qp.attr, c->req->modify_qp.mask);
}

static int op_query_qp(struct call *c)
{
	return rnic_qp_query(&d.rnic, c->req->ctx, c->req->id,
			     &c->rsp->query_qp.attr, &c->rsp->query_qp.init);
}

static int op_destroy_qp(struct call *c)
{
	struct rnic_qp_attr attr;
	struct rnic_qp_init init;
	int err = rnic_qp_query(&d.rnic, c->req->ctx, c->req->id, &attr, &init);

	if (!err)
		err = rnic_qp_destroy(&d.rnic, c->req->ctx, c->req->id,
				      &c->rsp->destroyed.async_events);
	if (!err)
		c->rsp->destroyed.async_events -=
			drop_pending(c->req->ctx, init.user_handle, false);
	return err;
}

static int op_modify_wq(struct call *c)
{
	return rnic_wq_modify(&d.rnic, c->req->ctx, c->req->modify_wq.wqn,
			      c->req->modify_wq.from, c->req->modify_wq.to);
}

static int op_create_wq_table(struct call *c)
{
	return rnic_wq_table_create(&d.rnic, c->req->ctx, &c->req->wq_table,
				    &c->rsp->id);
}

static int op_destroy_wq_table(struct call *c)
{
	return rnic_wq_table_destroy(&d.rnic, c->req->ctx, c->req->id);
}

static int op_create_flow(struct call *c)
{
	return rnic_flow_create(&d.rnic, c->req->ctx, &c->req->flow,
				&c->rsp->id);
}

static int op_destroy_flow(struct call *c)
{
	return rnic_flow_destroy(&d.rnic, c->req->ctx, c->req->id);
}

static int op_create_flow_counters(struct call *c)
{
	return rnic_flow_counters_create(&d.rnic, c->req->ctx, c->ctx->dev,
					 &c->rsp->id);
}

static int op_read_flow_counters(struct call *c)
{
	return rnic_flow_counters_read(&d.rnic, c->req->ctx, c->req->id,
				       &c->rsp->flow_count);
}

static int op_destroy_flow_counters(struct call *c)
{
	return rnic_flow_counters_destroy(&d.rnic, c->req->ctx, c->req->id);
}

static int op_open_qp(struct call *c)
{
	return rnic_qp_open(&d.rnic, c->req->ctx, c->req->open_qp.xrcd,
			    c->req->open_qp.qpn, c->req->open_qp.user_handle,
			    &c->rsp->id);
}

static int op_open_xrcd(struct call *c)
{
	struct rnic_xrcd_attr attr = c->req->xrcd;
	struct stat st;
	int err;

	attr.dev = c->ctx->dev;
	attr.fs = attr.ino = 0;
	if (attr.has_file && c->fd < 0)
		return EMFILE; /* it was sent, there was no room for it */
	if (attr.has_file) {
		if (fstat(c->fd, &st))
			return errno;
		attr.fs = st.st_dev;
		attr.ino = st.st_ino;
	}
	err = rnic_xrcd_open(&d.rnic, c->req->ctx, &attr, &c->rsp->id);
	if (err)
		return err;
	d.xrcd_fd[c->rsp->id] = c->fd;
	c->fd = -1;
	return 0;
}

static int op_close_xrcd(struct call *c)
{
	int err = rnic_xrcd_close(&d.rnic, c->req->ctx, c->req->id);

	close_xrcd_files();
	return err;
}

static int op_alloc_pages(struct call *c)
{
	struct block *b = calloc(1, sizeof(*b));

	if (!b)
		return ENOMEM;
	b->len = c->req->pages.len;
	b->off = pages_alloc(b->len);
	if (!b->off) {
		free(b);
		return ENOMEM;
	}
	b->space = d.space[c->conn->space].id;
	b->next = d.blocks;
	d.blocks = b;
	c->rsp->pages.off = b->off;
	return 0;
}

static int op_free_pages(struct call *c)
{
	struct block **p;

	for (p = &d.blocks; *p; p = &(*p)->next) {
		struct block *b = *p;

		if (b->off != c->req->pages.off ||
		    b->space != d.space[c->conn->space].id)
			continue;
		pages_free(b->off, b->len);
		*p = b->next;
		free(b);
		return 0;
	}
	return EINVAL;
}

static int op_get_fd(struct call *c)
{
	uint32_t kind = c->req->fd.kind, id = c->req->fd.id;
	const struct context *ctx = ctx_get(SFNIC_INDEX(id));

	if (kind != SFNIC_FD_ASYNC)
		c->reply_fd = daemon_get_fd(kind, id);
	else if (ctx && ctx->id == id)
		c->reply_fd = ctx->async;
	return c->reply_fd < 0 ? ENOENT : 0;
}

static int op_event(struct call *c)
{
	struct rnic_event event = c->req->event;
	struct channel *channel = channel_get(event.channel);

	if (event.type == RNIC_EVENT_COMPLETION && channel)
		event.ctx = channel->ctx;
	event_later(&event);
	return 0;
}

static int op_cm_open(struct call *c)
{
	int err;

	if (c->fd < 0)
		return EMFILE; /* it was sent, there was no room for it */
	err = daemon_cm_open(c->fd, &c->rsp->id);
	if (err)
		return err;
	err = watch_fd(c->fd, SRC_CM, c->rsp->id, EPOLLRDHUP);
	if (err)
		daemon_cm_close(c->rsp->id);
	c->fd = -1;
	return err;
}

static int op_cm(struct call *c)
{
	return daemon_cm_command(&c->req->cm, &c->rsp->cm);
}

static int op_info(struct call *c)
{
	daemon_cm_count(&c->rsp->info.cm);
	c->rsp->info.pid = getpid();
	c->rsp->info.users = users();
	c->rsp->info.arena_size = d.opt.arena_size;
	c->rsp->info.arena_used = pages_used();
	sfnic_options_line(&d.opt, c->rsp->info.options,
			   sizeof(c->rsp->info.options));
	return 0;
}

static void tell_of_port(uint32_t dev, uint32_t port, bool up)
{
	struct rnic_event event = {
		.type = up ? RNIC_EVENT_PORT_ACTIVE : RNIC_EVENT_PORT_ERR,
		.element = port,
	};
	uint32_t i;

	for (i = 1; i < SFNIC_MAX_CTX; i++) {
		if (!d.ctx[i].id || d.ctx[i].zombie || d.ctx[i].dev != dev)
			continue;
		event.ctx = i;
		daemon_ops.event(&d.host, &event);
	}
}

static int op_port(struct call *c)
{
	uint32_t dev = c->req->port.dev, port = c->req->port.port;
	int err = rnic_port_set(&d.rnic, dev, port, c->req->port.up);

	if (err == EALREADY)
		return 0;
	if (err)
		return err;
	tell_of_port(dev, port, c->req->port.up);
	return tree_put_port_state(&d.rnic, ".", dev, port);
}

/* id 1: also when it is in use. */
static int op_down(struct call *c)
{
	if (in_use() && c->req->id != 1)
		return EBUSY;
	d.down = 1;
	return 0;
}

enum needs {
	NEEDS_NOTHING,
	NEEDS_SPACE,
	NEEDS_CTX
};

static const struct {
	int (*fn)(struct call *c);
	enum needs needs;
} ops[] = {
	[SFNIC_HELLO] = {op_hello, NEEDS_NOTHING},
	[SFNIC_WATCH] = {op_watch, NEEDS_NOTHING},
	[SFNIC_OPEN] = {op_open, NEEDS_SPACE},
	[SFNIC_ALLOC_PD] = {op_alloc_pd, NEEDS_CTX},
	[SFNIC_DEALLOC_PD] = {op_dealloc_pd, NEEDS_CTX},
	[SFNIC_REG_MR] = {op_reg_mr, NEEDS_CTX},
	[SFNIC_DEREG_MR] = {op_dereg_mr, NEEDS_CTX},
	[SFNIC_REG_FILE_MR] = {op_reg_file_mr, NEEDS_CTX},
	[SFNIC_REREG_MR] = {op_rereg_mr, NEEDS_CTX},
	[SFNIC_ALLOC_MW] = {op_alloc_mw, NEEDS_CTX},
	[SFNIC_DEALLOC_MW] = {op_dealloc_mw, NEEDS_CTX},
	[SFNIC_ALLOC_DM] = {op_alloc_dm, NEEDS_CTX},
	[SFNIC_FREE_DM] = {op_free_dm, NEEDS_CTX},
	[SFNIC_SET_MAPS] = {op_set_maps, NEEDS_SPACE},
	[SFNIC_CREATE_CHANNEL] = {op_channel, NEEDS_CTX},
	[SFNIC_SET_ASYNC] = {op_async, NEEDS_CTX},
	[SFNIC_CREATE_CQ] = {op_create_cq, NEEDS_CTX},
	[SFNIC_RESIZE_CQ] = {op_resize_cq, NEEDS_CTX},
	[SFNIC_MODERATE_CQ] = {op_moderate_cq, NEEDS_CTX},
	[SFNIC_DESTROY_CQ] = {op_destroy_cq, NEEDS_CTX},
	[SFNIC_CREATE_AH] = {op_create_ah, NEEDS_CTX},
	[SFNIC_DESTROY_AH] = {op_destroy_ah, NEEDS_CTX},
	[SFNIC_ATTACH_MCAST] = {op_attach_mcast, NEEDS_CTX},
	[SFNIC_DETACH_MCAST] = {op_detach_mcast, NEEDS_CTX},
	[SFNIC_CREATE_SRQ] = {op_create_srq, NEEDS_CTX},
	[SFNIC_MODIFY_SRQ] = {op_modify_srq, NEEDS_CTX},
	[SFNIC_QUERY_SRQ] = {op_query_srq, NEEDS_CTX},
	[SFNIC_DESTROY_SRQ] = {op_destroy_srq, NEEDS_CTX},
	[SFNIC_CREATE_QP] = {op_create_qp, NEEDS_CTX},
	[SFNIC_MODIFY_QP] = {op_modify_qp, NEEDS_CTX},
	[SFNIC_QUERY_QP] = {op_query_qp, NEEDS_CTX},
	[SFNIC_DESTROY_QP] = {op_destroy_qp, NEEDS_CTX},
	[SFNIC_MODIFY_WQ] = {op_modify_wq, NEEDS_CTX},
	[SFNIC_CREATE_WQ_TABLE] = {op_create_wq_table, NEEDS_CTX},
	[SFNIC_DESTROY_WQ_TABLE] = {op_destroy_wq_table, NEEDS_CTX},
	[SFNIC_CREATE_FLOW] = {op_create_flow, NEEDS_CTX},
	[SFNIC_DESTROY_FLOW] = {op_destroy_flow, NEEDS_CTX},
	[SFNIC_CREATE_FLOW_COUNTERS] = {op_create_flow_counters, NEEDS_CTX},
	[SFNIC_READ_FLOW_COUNTERS] = {op_read_flow_counters, NEEDS_CTX},
	[SFNIC_DESTROY_FLOW_COUNTERS] = {op_destroy_flow_counters, NEEDS_CTX},
	[SFNIC_OPEN_QP] = {op_open_qp, NEEDS_CTX},
	[SFNIC_OPEN_XRCD] = {op_open_xrcd, NEEDS_CTX},
	[SFNIC_CLOSE_XRCD] = {op_close_xrcd, NEEDS_CTX},
	[SFNIC_ALLOC_PAGES] = {op_alloc_pages, NEEDS_SPACE},
	[SFNIC_FREE_PAGES] = {op_free_pages, NEEDS_SPACE},
	[SFNIC_GET_FD] = {op_get_fd, NEEDS_SPACE},
	[SFNIC_EVENT] = {op_event, NEEDS_SPACE},
	[SFNIC_CM_OPEN] = {op_cm_open, NEEDS_SPACE},
	[SFNIC_CM] = {op_cm, NEEDS_SPACE},
	[SFNIC_INFO] = {op_info, NEEDS_NOTHING},
	[SFNIC_DOWN] = {op_down, NEEDS_NOTHING},
	[SFNIC_PORT] = {op_port, NEEDS_NOTHING},
};

static int dispatch(struct call *c)
{
	uint32_t op = c->req->op;

	if (op >= sizeof(ops) / sizeof(ops[0]) || !ops[op].fn)
		return EOPNOTSUPP;
	if (ops[op].needs != NEEDS_NOTHING &&
	    (!c->conn->space || c->conn->watch))
		return EINVAL;
	c->ctx = ctx_get(c->req->ctx);
	if (ops[op].needs == NEEDS_CTX && (!c->ctx || c->ctx->zombie))
		return ENODEV;
	return ops[op].fn(c);
}

static void conn_serve(uint32_t index)
{
	struct conn *conn = &d.conn[index];
	struct sfnic_req req;
	struct sfnic_rsp rsp = {0};
	struct call call = {.conn = conn,
			    .req = &req,
			    .rsp = &rsp,
			    .fd = -1,
			    .reply_fd = -1};
	int err = wire_recv(conn->fd, &req, sizeof(req), &call.fd);

	if (err == EAGAIN)
		return;
	if (err) {
		conn_close(index);
		return;
	}
	rsp.err = dispatch(&call);
	if (call.fd >= 0)
		close(call.fd);
	if (wire_send(conn->fd, &rsp, sizeof(rsp),
		      rsp.err ? -1 : call.reply_fd))
		conn_close(index);
}

/* ---- start ---------------------------------------------------------- */

static int ready_fd = -1;

/* What to do about what has run out. */
static const char *advice(int err)
{
	switch (err) {
	case EAGAIN:
		return " (raise ulimit -u)";
	case EMFILE:
		return " (raise ulimit -n)";
	case ENOSPC:
	case EDQUOT:
		return "; make room or set SFNIC_DIR to another directory";
	}
	return "";
}

/* To whoever started us, else to stderr. */
static void __attribute__((noreturn)) give_up(const char *what, int err)
{
	char line[SFNIC_MSG_LEN];
	int n = snprintf(line, sizeof(line), "%s%s%s%s", what, err ? ": " : "",
			 err ? strerror(err) : "", advice(err));

	if (ready_fd >= 0)
		raw_write(ready_fd, line, (size_t)n);
	else
		fprintf(stderr, "sfnicd: %s\n", line);
	exit(1);
}

static void make_arena(void)
{
	uint64_t size = d.opt.arena_size;
	int fd = memfd_create("sfnic-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		give_up("cannot create the arena", errno);
	if (ftruncate(fd, (off_t)size))
		give_up("cannot size the arena (try --arena 1G, or raise "
			"ulimit -f)",
			errno);
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
	d.base = mmap(NULL, size, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (d.base == MAP_FAILED)
		give_up("cannot map the arena (try --arena 1G, or raise "
			"ulimit -v)",
			errno);
	madvise(d.base, size, MADV_DONTDUMP);
	d.arena_fd = fd;
	if (pages_init(fd, RNIC_ARENA_DYNAMIC + SFNIC_SHARED_SIZE, size))
		give_up("no memory", 0);
}

/* Locally administered; the same user, network and instance get the same. */
static uint64_t make_guid(void)
{
	uint64_t h = 0xcbf29ce484222325ull;
	char text[512], id[64] = "";
	struct stat st = {0};
	FILE *f = fopen("/etc/machine-id", "r");
	const char *p;

	if (f) {
		if (!fgets(id, sizeof(id), f))
			id[0] = 0;
		fclose(f);
	}
	stat("/proc/self/ns/net", &st);
	snprintf(text, sizeof(text), "%s/%u/%llu/%s", id, getuid(),
		 (unsigned long long)st.st_ino, d.dir);
	for (p = text; *p; p++)
		h = (h ^ (uint8_t)*p) * 0x100000001b3ull;
	/* 02:... says "locally administered"; the low byte numbers devices. */
	return (h & 0x00fffffffffffe00ull) | 0x0200000000000000ull;
}

static void make_rnic(void)
{
	struct rnic_config config = {
		.devices = d.opt.devices,
		.ports = d.opt.ports,
		.link_layer = d.opt.link_layer,
		.mtu = d.opt.mtu,
		.guid = make_guid(),
	};
	struct tree_net net = {0};
	struct tree_host host;
	char msg[SFNIC_MSG_LEN];
	uint32_t dev, port, i;
	size_t len;
	int err;

	memcpy(config.name, d.opt.name, sizeof(config.name) - 1);
	tree_host_net(&net);
	if (config.mtu == SFNIC_MTU_AUTO)
		config.mtu = RNIC_MTU_4096;
	if (d.opt.mtu == SFNIC_MTU_AUTO && net.rnic_mtu &&
	    d.opt.link_layer == RNIC_ETHERNET)
		config.mtu = net.rnic_mtu;
	daemon_ops = sfnic_host_ops;
	daemon_ops.mem_alloc = daemon_mem_alloc;
	daemon_ops.mem_free = daemon_mem_free;
	daemon_ops.reach = NULL;
	d.host.shared =
		(struct sfnic_shared *)((char *)d.base + RNIC_ARENA_DYNAMIC);
	d.host.shared->next_tick = UINT64_MAX;
	d.host.lock_wait_ms = 50; /* it has others to serve */
	d.host.get_fd = daemon_get_fd;
	d.host.lends_files = true;
	d.host.event_later = event_later;
	err = rnic_create(&d.rnic, d.base, d.opt.arena_size, &config,
			  &daemon_ops, &d.host);
	if (err)
		give_up("cannot set up the device", err);
	d.rnic.bounded = true;
	err = daemon_cm_start(&d.rnic, d.opt.addrs);
	if (err)
		give_up("no memory", err);
	for (dev = 0; dev < config.devices; dev++)
		for (port = 1; port <= config.ports; port++)
			for (i = 0;
			     config.link_layer == RNIC_ETHERNET && i < net.gids;
			     i++)
				rnic_port_add_gid(&d.rnic, dev, port,
						  net.gid[i]);
	tree_host_find(&host, d.opt.host_devices ? "" : NULL);
	d.host.shared->uverbs_base = host.uverbs;
	err = tree_create(&d.rnic, d.dir, &net, &host, msg, sizeof(msg));
	if (err) {
		len = strlen(msg);
		snprintf(msg + len, sizeof(msg) - len, "%s", advice(err));
		give_up(msg, 0);
	}
}

static void make_socket(void)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
			0);

	/* A relative name: the directory's path may be of any length. */
	if (fd < 0 || chdir(d.dir))
		give_up("cannot enter the runtime directory", errno);
	strcpy(sun.sun_path, "sock");
	unlink("sock");
	if (bind(fd, (struct sockaddr *)&sun, sizeof(sun)) || listen(fd, 1024))
		give_up("cannot listen in the runtime directory (set SFNIC_DIR "
			"to one that can be written)",
			errno);
	d.listen = fd;
}

#define CLAIM_TRIES 900 /* of 10 ms: less than the starter waits */

/*
 * One daemon a directory, also if a starter was killed and another one does not
 * know what he began: the directory is locked until we end.
 */
static void claim_directory(void)
{
	int sock, tries, dir = open(d.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		give_up("cannot enter the runtime directory", errno);
	for (tries = 0; tries < CLAIM_TRIES; tries++) {
		if (!flock(dir, LOCK_EX | LOCK_NB))
			return; /* dir stays open */
		if (errno != EWOULDBLOCK)
			give_up("cannot lock the runtime directory", errno);
		sock = wire_connect(d.dir);
		if (sock >= 0 && ready_fd >= 0) {
			raw_write(ready_fd, "\n", 1);
			exit(0);
		}
		if (sock >= 0)
			break;
		poll(NULL, 0, 10);
	}
	give_up("another daemon serves the runtime directory", 0);
}

#define WANTED_FILES (1u << 20)

/* The limits of who started us are not meant for us, as far as we may. */
static void raise_limit(int what, rlim_t wanted)
{
	struct rlimit limit = {wanted, wanted};

	if (!setrlimit(what, &limit) || getrlimit(what, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(what, &limit);
}

static void set_up(void)
{
	uint32_t i;

	for (i = 0; i < MAX_CONN; i++)
		d.conn[i].fd = -1;
	for (i = 0; i < RNIC_MAX_XRCD; i++)
		d.xrcd_fd[i] = -1;
	raise_limit(RLIMIT_NOFILE, WANTED_FILES);
	raise_limit(RLIMIT_FSIZE, RLIM_INFINITY);
	raise_limit(RLIMIT_AS, RLIM_INFINITY);
	raise_limit(RLIMIT_DATA, RLIM_INFINITY);
	raise_limit(RLIMIT_CPU, RLIM_INFINITY);
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	claim_directory();
	d.epoll = epoll_create1(EPOLL_CLOEXEC);
	d.host.kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	d.reserve = fcntl(d.epoll, F_DUPFD_CLOEXEC, 0);
	if (d.epoll < 0 || d.host.kick_fd < 0 || d.reserve < 0)
		give_up("cannot set up", errno);
	make_arena();
	make_rnic();
	make_socket();
	watch_fd(d.listen, SRC_LISTEN, 0, EPOLLIN);
	watch_fd(d.host.kick_fd, SRC_KICK, 0, EPOLLIN);
}

/* ---- loop ----------------------------------------------------------- */

static uint64_t now_ns(void)
{
	return daemon_ops.now(NULL);
}

/* Runs due timers; milliseconds until the next, or -1. */
static int run_timers(void)
{
	uint64_t *word = &d.host.shared->next_tick;
	uint64_t now = now_ns(), next;

	__atomic_store_n(word, UINT64_MAX, __ATOMIC_SEQ_CST);
	next = rnic_tick(&d.rnic, now);
	daemon_ops.timer(&d.host, next);
	next = __atomic_load_n(word, __ATOMIC_SEQ_CST);
	if (next == UINT64_MAX)
		return -1;
	now = now_ns();
	return next <= now ? 0 : (int)((next - now) / 1000000 + 1);
}

static int linger_ms(void)
{
	uint64_t end;

	if (in_use()) {
		d.unused_since = 0;
		return -1;
	}
	if (!d.unused_since)
		d.unused_since = now_ns();
	end = d.unused_since + d.opt.linger * 1000000000ull;
	if (now_ns() >= end) {
		d.down = 1;
		return 0;
	}
	return (int)((end - now_ns()) / 1000000 + 1);
}

static int sooner(int a, int b)
{
	if (a < 0)
		return b;
	return b < 0 || a < b ? a : b;
}

static void handle(uint64_t what)
{
	uint32_t index = (uint32_t)what;
	uint64_t n;

	switch (what >> 32) {
	case SRC_LISTEN:
		conn_accept();
		break;
	case SRC_KICK:
		raw_read(d.host.kick_fd, &n, sizeof(n));
		break;
	case SRC_CONN:
		if (d.conn[index].fd >= 0)
			conn_serve(index);
		break;
	case SRC_LIFE:
		ctx_end(index);
		break;
	case SRC_CM:
		daemon_cm_close(index);
		break;
	}
}

static void loop(void)
{
	struct epoll_event ev[64];

	while (!d.down) {
		int wait = sooner(run_timers(), linger_ms());
		int i, n;

		wait = sooner(wait, daemon_cm_timers());
		if (d.pendings)
			wait = sooner(wait, 1);
		if (reap_zombies())
			wait = sooner(wait, 200);
		n = epoll_wait(d.epoll, ev, 64, wait);
		for (i = 0; i < n; i++)
			handle(ev[i].data.u64);
		if (d.pendings)
			deliver_pending();
	}
}

/*
 * Nobody finds a half-gone daemon: the next one waits until we have ended.  By
 * relative names: where our directory was removed, another's may stand.
 */
static void tear_down(void)
{
	unlink("sock");
	tree_remove(".");
	close(d.listen);
}

#define READY 3 /* where its descriptor ends up */

/*
 * Away from the caller's terminal, descriptors, parent.  Descriptors 0 to 2
 * stand for nothing, without a /dev/null; the caller may have closed them and
 * @keep be one of them.
 */
static void detach(int keep)
{
	int i, nothing = open("/", O_PATH);
	pid_t pid;

	keep = fcntl(keep, F_DUPFD, READY);
	if (keep > READY)
		keep = dup2(keep, READY);
	if (keep < 0 || nothing < 0)
		give_up("cannot detach", EMFILE);
	ready_fd = keep;
	for (i = 0; i < READY; i++)
		dup2(nothing, i);
	closefrom(READY + 1);
	pid = fork();
	if (pid > 0)
		_exit(0);
	if (pid < 0)
		give_up("cannot fork", errno);
	setsid();
	umask(077);
}

int main(int argc, char **argv)
{
	int next = 1, ready = -1;

	if (argc < 3 || strcmp(argv[1], "--dir")) {
		fprintf(stderr,
			"usage: sfnicd --dir DIR [--ready FD] "
			"[options of sfnic run]\n"
			"It is started by `sfnic run`; see sfnicd(8).\n");
		return 2;
	}
	d.dir = argv[2];
	next = 3;
	if (next + 1 < argc && !strcmp(argv[next], "--ready")) {
		ready = atoi(argv[next + 1]);
		next += 2;
	}
	if (sfnic_options_parse(&d.opt, argc - next + 1, argv + next - 1) < 0)
		return 2;
	if (ready >= 0)
		detach(ready);
	set_up();
	if (ready_fd >= 0) {
		raw_write(ready_fd, "\n", 1);
		raw_close(ready_fd);
	}
	loop();
	tear_down();
	return 0;
}
