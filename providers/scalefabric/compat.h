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
