// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Memory of the device, and what imports need: the driver's own methods. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <util/udma_barrier.h>

#include "scalefabric.h"

/* ------------------------------------------------------------------------
 * Questions that only this driver answers
 */

struct sf_query {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attrs[2];
};

static int sf_query(struct ibv_context *context, uint16_t object,
		    uint16_t method, const struct ib_uverbs_attr *attrs,
		    uint16_t n)
{
	struct sf_query q = {
		.hdr = {.length = sizeof(q.hdr) + n * sizeof(q.attrs[0]),
			.object_id = object,
			.method_id = method,
			.num_attrs = n,
			.driver_id = RDMA_DRIVER_UNKNOWN},
	};

	memcpy(q.attrs, attrs, n * sizeof(*attrs));
	return ioctl(context->cmd_fd, RDMA_VERBS_IOCTL, &q) ? errno : 0;
}

static struct ib_uverbs_attr sf_attr(uint16_t id, uint16_t len, uint64_t data)
{
	return (struct ib_uverbs_attr){
		.attr_id = id,
		.len = len,
		.flags = UVERBS_ATTR_F_MANDATORY,
		.data = data,
	};
}

static int sf_query_object(struct ibv_context *context, uint16_t object,
			   uint16_t method, uint32_t handle, void *resp,
			   uint16_t size)
{
	struct ib_uverbs_attr attrs[] = {
		sf_attr(SCALEFABRIC_QUERY_HANDLE, 0, handle),
		sf_attr(SCALEFABRIC_QUERY_RESP, size, (uintptr_t)resp),
	};

	return sf_query(context, object, method, attrs, 2);
}

int sf_query_context(struct ibv_context *context,
		     struct scalefabric_alloc_ucontext_resp *resp)
{
	struct ib_uverbs_attr attr = sf_attr(SCALEFABRIC_QUERY_CONTEXT_RESP,
					     sizeof(*resp), (uintptr_t)resp);

	return sf_query(context, UVERBS_OBJECT_DEVICE,
			UVERBS_METHOD_QUERY_CONTEXT, &attr, 1);
}

int sf_query_pd(struct ibv_context *context, uint32_t handle,
		struct scalefabric_alloc_pd_resp *resp)
{
	return sf_query_object(context, UVERBS_OBJECT_PD, SCALEFABRIC_PD_QUERY,
			       handle, resp, sizeof(*resp));
}

/* ------------------------------------------------------------------------
 * Device memory
 */

struct sf_dm {
	struct verbs_dm vdm;
	struct sf_view view;
	size_t length;
};

static struct sf_dm *to_sf_dm(struct ibv_dm *dm)
{
	return container_of(dm, struct sf_dm, vdm.dm);
}

/* The device takes words of 4 bytes. */
static int sf_check_dm_access(const struct sf_dm *dm, uint64_t offset,
			      size_t length)
{
	if (offset > dm->length || length > dm->length - offset)
		return EFAULT;
	return (offset | length) & 3 ? EINVAL : 0;
}

static int sf_memcpy_to_dm(struct ibv_dm *ibdm, uint64_t offset,
			   const void *host_addr, size_t length)
{
	struct sf_dm *dm = to_sf_dm(ibdm);
	int err;

	err = sf_check_dm_access(dm, offset, length);
	if (err)
		return err;
	memcpy((char *)dm->view.addr + offset, host_addr, length);
	udma_to_device_barrier();
	return 0;
}

static int sf_memcpy_from_dm(void *host_addr, struct ibv_dm *ibdm,
			     uint64_t offset, size_t length)
{
	struct sf_dm *dm = to_sf_dm(ibdm);
	int err;

	err = sf_check_dm_access(dm, offset, length);
	if (err)
		return err;
	udma_from_device_barrier();
	memcpy(host_addr, (char *)dm->view.addr + offset, length);
	return 0;
}

/* Asks where it lies, and maps it. */
static int sf_map_dm(struct ibv_context *context, struct sf_dm *dm)
{
	struct scalefabric_query_dm_resp resp = {};
	int err;

	err = sf_query_object(context, UVERBS_OBJECT_DM, SCALEFABRIC_DM_QUERY,
			      dm->vdm.handle, &resp, sizeof(resp));
	if (err)
		return err;
	err = sf_map_region(to_sf_context(context), &resp.region, resp.length,
			    &dm->view);
	if (err)
		return err;
	dm->length = resp.length;
	dm->vdm.dm.memcpy_to_dm = sf_memcpy_to_dm;
	dm->vdm.dm.memcpy_from_dm = sf_memcpy_from_dm;
	return 0;
}

static struct ibv_dm *sf_dm_failed(struct sf_dm *dm, int err)
{
	free(dm);
	errno = err;
	return NULL;
}

struct ibv_dm *sf_alloc_dm(struct ibv_context *context,
			   struct ibv_alloc_dm_attr *attr)
{
	struct sf_dm *dm;
	int err;

	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	dm = calloc(1, sizeof(*dm));
	if (!dm)
		return NULL;

	err = ibv_cmd_alloc_dm(context, attr, &dm->vdm, NULL);
	if (err)
		return sf_dm_failed(dm, err);
	err = sf_map_dm(context, dm);
	if (err) {
		ibv_cmd_free_dm(&dm->vdm);
		return sf_dm_failed(dm, err);
	}
	return &dm->vdm.dm;
}

struct ibv_dm *sf_import_dm(struct ibv_context *context, uint32_t handle)
{
	struct sf_dm *dm;
	int err;

	dm = calloc(1, sizeof(*dm));
	if (!dm)
		return NULL;

	dm->vdm.handle = handle;
	dm->vdm.dm.handle = handle;
	dm->vdm.dm.comp_mask = IBV_DM_MASK_HANDLE;
	dm->vdm.dm.context = context;
	err = sf_map_dm(context, dm);
	if (err)
		return sf_dm_failed(dm, err);
	return &dm->vdm.dm;
}

void sf_unimport_dm(struct ibv_dm *ibdm)
{
	struct sf_dm *dm = to_sf_dm(ibdm);

	sf_unmap_region(to_sf_context(ibdm->context), &dm->view);
	free(dm);
}

int sf_free_dm(struct ibv_dm *ibdm)
{
	int err;

	err = ibv_cmd_free_dm(&to_sf_dm(ibdm)->vdm);
	if (err)
		return err;

	sf_unimport_dm(ibdm);
	return 0;
}

struct ibv_mr *sf_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibdm,
			    uint64_t offset, size_t length, unsigned int access)
{
	struct verbs_mr *mr;
	int err;

	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;

	err = ibv_cmd_reg_dm_mr(pd, &to_sf_dm(ibdm)->vdm, offset, length,
				access, mr, NULL);
	if (err) {
		free(mr);
		errno = err;
		return NULL;
	}
	return &mr->ibv_mr;
}
