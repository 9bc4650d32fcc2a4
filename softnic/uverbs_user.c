// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The caller's memory, and calls to the backend.
 *
 * A command carries pointers that may be wrong.  The kernel copies for us and
 * says EFAULT; where a sandbox forbids that, a plain copy has to do.
 */
#include <sys/uio.h>
#include <unistd.h>

#include "softnic/uverbs_cmd.h"

typedef ssize_t copy_call(pid_t pid, const struct iovec *local,
			  unsigned long nlocal, const struct iovec *remote,
			  unsigned long nremote, unsigned long flags);

enum copied {
	COPY_OK,
	COPY_FAULT,
	COPY_FORBIDDEN
};

static enum copied kernel_copy(copy_call *call, void *ours, uint64_t theirs,
			       size_t len)
{
	struct iovec local = {ours, len};
	struct iovec remote = {(void *)(uintptr_t)theirs, len};
	ssize_t n = call(getpid(), &local, 1, &remote, 1, 0);

	if (n == (ssize_t)len)
		return COPY_OK;
	if (n < 0 && (errno == EPERM || errno == ENOSYS))
		return COPY_FORBIDDEN;
	return COPY_FAULT;
}

int uverbs_copy_in(void *to, uint64_t from, size_t len)
{
	if (!len)
		return 0;
	switch (kernel_copy(process_vm_readv, to, from, len)) {
	case COPY_FORBIDDEN:
		if (!from)
			return EFAULT;
		memcpy(to, (const void *)(uintptr_t)from, len);
		return 0;
	case COPY_FAULT:
		return EFAULT;
	default:
		return 0;
	}
}

int uverbs_copy_out(uint64_t to, const void *from, size_t len)
{
	if (!len)
		return 0;
	switch (kernel_copy(process_vm_writev, (void *)from, to, len)) {
	case COPY_FORBIDDEN:
		if (!to)
			return EFAULT;
		memcpy((void *)(uintptr_t)to, from, len);
		return 0;
	case COPY_FAULT:
		return EFAULT;
	default:
		return 0;
	}
}

int uverbs_check_zero(uint64_t addr, size_t len)
{
	uint8_t chunk[256];
	size_t n, i;
	int err;

	for (; len; addr += n, len -= n) {
		n = len < sizeof(chunk) ? len : sizeof(chunk);
		err = uverbs_copy_in(chunk, addr, n);
		if (err)
			return err;
		for (i = 0; i < n; i++)
			if (chunk[i])
				return EINVAL;
	}
	return 0;
}

static int put_zero(uint64_t addr, size_t len)
{
	static const uint8_t zero[256];
	size_t n;
	int err = 0;

	for (; len && !err; addr += n, len -= n) {
		n = len < sizeof(zero) ? len : sizeof(zero);
		err = uverbs_copy_out(addr, zero, n);
	}
	return err;
}

int uverbs_get(const struct uverbs_buf *buf, void *to, size_t size)
{
	size_t n = buf->len < size ? buf->len : size;
	int err;

	if (size > n)
		memset((char *)to + n, 0, size - n);
	err = uverbs_copy_in(to, buf->addr, n);
	if (err)
		return err;
	err = uverbs_check_zero(buf->addr + n, buf->len - n);
	return err == EINVAL ? EOPNOTSUPP : err;
}

int uverbs_get_uhw(const struct uverbs_cmd *c, void *to, size_t size)
{
	const struct uverbs_buf *buf = &c->attr[UVERBS_SLOT_UHW_IN];

	if (buf->len < size)
		return EINVAL;
	return uverbs_get(buf, to, size);
}

int uverbs_put(struct uverbs_buf *buf, const void *from, size_t size)
{
	size_t n = buf->len < size ? buf->len : size;
	int err;

	if (!buf->present)
		return 0;
	err = uverbs_copy_out(buf->addr, from, n);
	if (!err)
		err = put_zero(buf->addr + n, buf->len - n);
	if (!err)
		buf->written = true;
	return err;
}

int uverbs_put_uhw(struct uverbs_cmd *c, const void *from, size_t size)
{
	return uverbs_put(&c->attr[UVERBS_SLOT_UHW_OUT], from, size);
}

/* Writes back what is there: on failure the caller's buffers are as before. */
static int probe_byte(uint64_t addr)
{
	uint8_t byte;
	int err;

	err = uverbs_copy_in(&byte, addr, 1);
	return err ? err : uverbs_copy_out(addr, &byte, 1);
}

static int probe_buf(const struct uverbs_buf *buf)
{
	uint64_t last = buf->addr + buf->len - 1;
	uint64_t at;
	int err;

	if (!buf->present || !buf->out || !buf->len)
		return 0;
	if (last < buf->addr)
		return EFAULT;
	err = probe_byte(last);
	for (at = buf->addr; !err && at <= last; at += RNIC_PAGE) {
		err = probe_byte(at);
		if (at + RNIC_PAGE < at)
			break;
	}
	return err;
}

int uverbs_probe(const struct uverbs_cmd *c)
{
	int err = probe_buf(&c->list);
	int i;

	for (i = 0; !err && i < UVERBS_SLOTS; i++)
		err = probe_buf(&c->attr[i]);
	return err;
}

int uverbs_call_fd(const struct uverbs_cmd *c, uint32_t op,
		   struct sfnic_req *req, int fd, struct sfnic_rsp *rsp)
{
	int err;

	req->op = op;
	req->ctx = c->ctx;
	memset(rsp, 0, sizeof(*rsp));
	err = c->ops->call(req, fd, rsp, NULL);
	return err ? err : rsp->err;
}

int uverbs_call(const struct uverbs_cmd *c, uint32_t op, struct sfnic_req *req,
		struct sfnic_rsp *rsp)
{
	return uverbs_call_fd(c, op, req, -1, rsp);
}

int uverbs_call_id(const struct uverbs_cmd *c, uint32_t op, uint32_t id,
		   struct sfnic_rsp *rsp)
{
	struct sfnic_req req = {.id = id};

	return uverbs_call(c, op, &req, rsp);
}

static uint32_t reported(const struct uverbs_cmd *c, uint32_t raised, int fd,
			 uint64_t record, uint32_t size)
{
	uint32_t unread;

	if (!raised || fd < 0)
		return raised;
	unread = c->ops->drop_events(fd, record, size);
	return unread < raised ? raised - unread : 0;
}

int uverbs_destroy(const struct uverbs_cmd *c, uint32_t op, uint32_t id,
		   const struct uverbs_events *events, uint32_t *comp,
		   uint32_t *async)
{
	struct sfnic_rsp rsp;
	int err;

	c->ops->lock_events();
	err = uverbs_call_id(c, op, id, &rsp);
	if (!err && comp)
		*comp = reported(c, rsp.destroyed.comp_events, events->comp_fd,
				 events->user_handle,
				 sizeof(struct ib_uverbs_comp_event_desc));
	if (!err)
		*async = reported(c, rsp.destroyed.async_events,
				  events->async_fd, events->user_handle,
				  sizeof(struct ib_uverbs_async_event_desc));
	c->ops->unlock_events();
	return err;
}

int uverbs_check_mem(const struct scalefabric_mem *mem)
{
	if (mem->kind != SCALEFABRIC_MEM_DRIVER)
		return EOPNOTSUPP;
	if (mem->addr || mem->length || mem->fd != -1)
		return EINVAL;
	return 0;
}
