/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What changed in libibverbs' private interface after version 34. */
#ifndef SF_COMPAT_H
#define SF_COMPAT_H

#include <infiniband/driver.h>

/* 57: an array of file descriptors may come back with the context. */
#if IBVERBS_PABI_VERSION >= 57
#define sf_cmd_get_context(context, cmd, cmd_size, resp, resp_size) \
	ibv_cmd_get_context(context, cmd, cmd_size, NULL, resp, resp_size)
#else
#define sf_cmd_get_context ibv_cmd_get_context
#endif

/*
 * On the way to rdma-core 56 it got one more argument, a pointer, under the same
 * version of the interface.  Who does not know of it does not look at it.
 */
typedef int sf_cmd_reg_dmabuf_mr_fn(struct ibv_pd *pd, uint64_t offset,
				    size_t length, uint64_t iova, int fd,
				    int access, struct verbs_mr *mr,
				    void *driver);

static inline int sf_cmd_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
				       size_t length, uint64_t iova, int fd,
				       int access, struct verbs_mr *mr)
{
	void (*volatile fn)(void) = (void (*)(void))ibv_cmd_reg_dmabuf_mr;

	return ((sf_cmd_reg_dmabuf_mr_fn *)fn)(pd, offset, length, iova, fd,
					       access, mr, NULL);
}

/* 59: the caller may bring the buffer of a CQ. */
#if IBVERBS_PABI_VERSION >= 59
#define sf_cmd_create_cq_ex(context, attr, cq, cmd, cmd_size, resp, resp_size, \
			    flags)                                             \
	ibv_cmd_create_cq_ex(context, attr, NULL, cq, cmd, cmd_size, resp,     \
			     resp_size, flags)
#else
#define sf_cmd_create_cq_ex ibv_cmd_create_cq_ex
#endif

#endif
