// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>

#include "compat.h"
#include "scalefabric.h"

struct ibv_mr *sf_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			 uint64_t hca_va, int access)
{
	struct ib_uverbs_reg_mr_resp resp;
	struct ibv_reg_mr cmd;
	struct verbs_mr *mr;
	int err;

	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;

	err = ibv_cmd_reg_mr(pd, addr, length, hca_va, access, mr, &cmd,
			     sizeof(cmd), &resp, sizeof(resp));
	if (err) {
		free(mr);
		errno = err;
		return NULL;
	}
	return &mr->ibv_mr;
}

/* Zeros for a gather list, a pit for a scatter list: all addresses are in it.
 */
struct ibv_mr *sf_alloc_null_mr(struct ibv_pd *pd)
{
	struct ib_uverbs_reg_mr_resp resp;
	struct sf_reg_mr cmd = {
		.drv_payload.flags = SCALEFABRIC_MR_NULL,
	};
	struct verbs_mr *mr;
	int err;

	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;

	err = ibv_cmd_reg_mr(pd, NULL, 0, 0, IBV_ACCESS_LOCAL_WRITE, mr,
			     &cmd.ibv_cmd, sizeof(cmd), &resp, sizeof(resp));
	if (err) {
		free(mr);
		errno = err;
		return NULL;
	}
	mr->mr_type = IBV_MR_TYPE_NULL_MR;
	mr->ibv_mr.pd = pd;
	mr->ibv_mr.length = SIZE_MAX;
	return &mr->ibv_mr;
}

int sf_rereg_mr(struct verbs_mr *mr, int flags, struct ibv_pd *pd, void *addr,
		size_t length, int access)
{
	struct ib_uverbs_rereg_mr_resp resp;
	struct ibv_rereg_mr cmd = {};

	return ibv_cmd_rereg_mr(mr, flags, addr, length, (uintptr_t)addr,
				access, pd, &cmd, sizeof(cmd), &resp,
				sizeof(resp));
}

struct ibv_mr *sf_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
				size_t length, uint64_t iova, int fd,
				int access)
{
	struct verbs_mr *mr;
	int err;

	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;

	err = sf_cmd_reg_dmabuf_mr(pd, offset, length, iova, fd, access, mr);
	if (err) {
		free(mr);
		errno = err;
		return NULL;
	}
	return &mr->ibv_mr;
}

struct ibv_mr *sf_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	struct verbs_mr *mr;
	int err;

	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;

	err = ibv_cmd_query_mr(pd, mr, handle);
	if (err) {
		free(mr);
		errno = err;
		return NULL;
	}
	return &mr->ibv_mr;
}

void sf_unimport_mr(struct ibv_mr *mr)
{
	free(container_of(mr, struct verbs_mr, ibv_mr));
}

int sf_dereg_mr(struct verbs_mr *mr)
{
	int err;

	err = ibv_cmd_dereg_mr(mr);
	if (err)
		return err;

	free(mr);
	return 0;
}
