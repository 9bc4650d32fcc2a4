// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Protection domains, thread domains, parent domains. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <util/util.h>

#include "scalefabric.h"

struct ibv_pd *sf_alloc_pd(struct ibv_context *context)
{
	struct sf_alloc_pd_resp resp = {};
	struct sf_alloc_pd cmd = {};
	struct sf_pd *pd;
	int err;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;

	err = ibv_cmd_alloc_pd(context, &pd->ibv_pd, &cmd.ibv_cmd, sizeof(cmd),
			       &resp.ibv_resp, sizeof(resp));
	if (err) {
		free(pd);
		errno = err;
		return NULL;
	}

	pd->pdn = resp.drv_payload.pdn;
	return &pd->ibv_pd;
}

struct ibv_pd *sf_import_pd(struct ibv_context *context, uint32_t handle)
{
	struct scalefabric_alloc_pd_resp resp = {};
	struct sf_pd *pd;
	int err;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;

	err = sf_query_pd(context, handle, &resp);
	if (err) {
		free(pd);
		errno = err;
		return NULL;
	}

	pd->ibv_pd.context = context;
	pd->ibv_pd.handle = handle;
	pd->pdn = resp.pdn;
	return &pd->ibv_pd;
}

void sf_unimport_pd(struct ibv_pd *pd)
{
	free(to_sf_pd(pd));
}

static void sf_dealloc_parent(struct sf_pd *parent)
{
	sf_ref_put(&parent->protection->users);
	if (parent->td)
		sf_ref_put(&parent->td->users);
	free(parent);
}

/* The kernel knows who uses a PD, but for parent domains and their users. */
int sf_dealloc_pd(struct ibv_pd *ibpd)
{
	struct sf_pd *pd = to_sf_pd(ibpd);
	int err;

	if (sf_ref_held(&pd->users))
		return EBUSY;
	if (pd->protection) {
		sf_dealloc_parent(pd);
		return 0;
	}
	err = ibv_cmd_dealloc_pd(ibpd);
	if (err)
		return err;

	free(pd);
	return 0;
}

/* ------------------------------------------------------------------------
 * Thread domain: what is created in it is used by one thread at a time
 */

struct ibv_td *sf_alloc_td(struct ibv_context *context,
			   struct ibv_td_init_attr *attr)
{
	struct sf_td *td;

	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->ibv_td.context = context;
	return &td->ibv_td;
}

int sf_dealloc_td(struct ibv_td *ibtd)
{
	struct sf_td *td = container_of(ibtd, struct sf_td, ibv_td);

	if (sf_ref_held(&td->users))
		return EBUSY;
	free(td);
	return 0;
}

/* ------------------------------------------------------------------------
 * Parent domain: a PD with a thread domain, an allocator, or both
 */

#define SF_PARENT_SUPPORTED_MASK                  \
	(IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | \
	 IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)

static int sf_check_parent_attr(const struct ibv_parent_domain_init_attr *attr)
{
	if (!check_comp_mask(attr->comp_mask, SF_PARENT_SUPPORTED_MASK))
		return EOPNOTSUPP;
	if (!attr->pd || to_sf_pd(attr->pd)->protection)
		return EINVAL;
	if ((attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) &&
	    (!attr->alloc || !attr->free))
		return EINVAL;
	return 0;
}

struct ibv_pd *sf_alloc_parent_domain(struct ibv_context *context,
				      struct ibv_parent_domain_init_attr *attr)
{
	struct sf_pd *parent;
	int err;

	err = sf_check_parent_attr(attr);
	if (err) {
		errno = err;
		return NULL;
	}
	parent = calloc(1, sizeof(*parent));
	if (!parent)
		return NULL;

	parent->ibv_pd.context = context;
	parent->ibv_pd.handle = attr->pd->handle;
	parent->protection = to_sf_pd(attr->pd);
	parent->pdn = parent->protection->pdn;
	sf_ref_get(&parent->protection->users);
	if (attr->td) {
		parent->td = container_of(attr->td, struct sf_td, ibv_td);
		sf_ref_get(&parent->td->users);
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
		parent->alloc = attr->alloc;
		parent->free = attr->free;
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		parent->pd_context = attr->pd_context;
	return &parent->ibv_pd;
}

void sf_domain_join(struct ibv_pd *pd)
{
	if (pd && to_sf_pd(pd)->protection)
		sf_ref_get(&to_sf_pd(pd)->users);
}

void sf_domain_leave(struct ibv_pd *pd)
{
	if (pd && to_sf_pd(pd)->protection)
		sf_ref_put(&to_sf_pd(pd)->users);
}

bool sf_domain_single_threaded(struct ibv_pd *pd)
{
	return pd && to_sf_pd(pd)->td;
}

/* ------------------------------------------------------------------------
 * Memory of the provider's own, zeroed.  Queues are the device's memory and
 * not a matter of an allocator.
 */

#define SF_ALLOC_ALIGN 64

int sf_mem_alloc(struct sf_mem *mem, struct ibv_pd *ibpd, size_t n, size_t size)
{
	struct sf_pd *pd = ibpd ? to_sf_pd(ibpd) : NULL;

	mem->pd = NULL;
	if (pd && pd->alloc) {
		mem->addr = pd->alloc(ibpd, pd->pd_context, n * size,
				      SF_ALLOC_ALIGN, 0);
		if (!mem->addr)
			return ENOMEM;
		if (mem->addr != IBV_ALLOCATOR_USE_DEFAULT) {
			mem->pd = pd;
			memset(mem->addr, 0, n * size);
			return 0;
		}
	}
	mem->addr = calloc(n, size);
	return mem->addr ? 0 : ENOMEM;
}

void sf_mem_free(struct sf_mem *mem)
{
	if (mem->pd && mem->addr)
		mem->pd->free(&mem->pd->ibv_pd, mem->pd->pd_context, mem->addr,
			      0);
	else
		free(mem->addr);
	mem->addr = NULL;
}
