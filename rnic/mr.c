/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Memory regions and device memory: create, modify, destroy. */
#include "rnic/internal.h"

/* ---- device memory -------------------------------------------------- */

static bool dm_live(const struct rnic *r, uint32_t i)
{
	return i == 0 || r->sh->dm[i].live;
}

static const struct rnic_dm *dm_get(const struct rnic *r, uint32_t ctx,
				    uint32_t dm)
{
	const struct rnic_dm *d = &r->sh->dm[dm % RNIC_MAX_DM];

	return dm && dm < RNIC_MAX_DM && d->live && d->ctx == ctx ? d : NULL;
}

int rnic_dm_create(struct rnic *r, uint32_t ctx, uint32_t dev, uint64_t len,
		   uint32_t *dm, uint64_t *off)
{
	struct rnic_dm *d;
	int err;

	if (dev >= r->sh->devices || !len)
		return EINVAL;
	if (len > RNIC_MAX_DM_SIZE)
		return ENOMEM;
	*off = r->ops->mem_alloc(r->host, len);
	if (!*off)
		return ENOMEM;
	err = rnic_pool_take(r, &r->sh->dms, RNIC_MAX_DM, dm_live, dm);
	if (err) {
		r->ops->mem_free(r->host, *off, len);
		return err;
	}
	d = &r->sh->dm[*dm];
	*d = (struct rnic_dm){
		.live = 1, .ctx = ctx, .dev = dev, .off = *off, .len = len};
	return 0;
}

int rnic_dm_query(const struct rnic *r, uint32_t ctx, uint32_t dm,
		  uint64_t *off, uint64_t *len)
{
	const struct rnic_dm *d = dm_get(r, ctx, dm);

	if (!d)
		return EINVAL;
	*off = d->off;
	*len = d->len;
	return 0;
}

int rnic_dm_destroy(struct rnic *r, uint32_t ctx, uint32_t dm)
{
	struct rnic_dm *d;

	if (!dm_get(r, ctx, dm))
		return EINVAL;
	d = &r->sh->dm[dm];
	if (d->users)
		return EBUSY;
	r->ops->mem_free(r->host, d->off, d->len);
	d->live = 0;
	r->sh->dms.used--;
	return 0;
}

/* ---- regions -------------------------------------------------------- */

static bool key_live(const struct rnic *r, uint32_t i)
{
	return i == 0 || r->sh->mr[i].live;
}

/* Takes an entry and gives it a number that its previous user never had. */
static int take_key(struct rnic *r, uint32_t *key)
{
	struct rnic_mr *mr;
	uint32_t index, tag;
	int err;

	err = rnic_pool_take(r, &r->sh->keys, RNIC_MAX_KEYS, key_live, &index);
	if (err)
		return err;
	mr = &r->sh->mr[index];
	tag = (SF_KEY_TAG(mr->last_key) + 1) & ((1u << SF_KEY_TAG_BITS) - 1);
	*key = index << SF_KEY_TAG_BITS | tag;
	mr->last_key = *key;
	mr->tag = tag;
	mr->live = 1;
	return 0;
}

static struct rnic_mr *key_get(const struct rnic *r, uint32_t ctx, uint32_t key)
{
	uint32_t index = SF_KEY_INDEX(key);
	struct rnic_mr *mr = &r->sh->mr[index % RNIC_MAX_KEYS];

	return index < RNIC_MAX_KEYS && mr->live && mr->last_key == key &&
			       mr->ctx == ctx ?
		       mr :
		       NULL;
}

static struct rnic_mr *region_get(const struct rnic *r, uint32_t ctx,
				  uint32_t key)
{
	struct rnic_mr *mr = key_get(r, ctx, key);

	return mr && mr->kind == RNIC_KEY_REGION ? mr : NULL;
}

static bool segments_ok(const struct rnic *r, const struct rnic_mr_attr *a)
{
	uint64_t end = a->addr;
	uint32_t i;

	for (i = 0; i < a->nseg; i++) {
		const struct rnic_mr_seg *seg = &a->seg[i];

		if (seg->va < end || seg->va + seg->len < seg->va ||
		    seg->va + seg->len > a->addr + a->len ||
		    seg->off < RNIC_ARENA_DYNAMIC ||
		    !rnic_in_arena(r, seg->off, seg->len))
			return false;
		end = seg->va + seg->len;
	}
	return true;
}

static bool mr_attr_ok(const struct rnic *r, uint32_t ctx,
		       const struct rnic_mr_attr *a)
{
	const struct rnic_dm *dm = a->dm ? dm_get(r, ctx, a->dm) : NULL;

	if (a->addr + a->len < a->addr || a->iova + a->len < a->iova ||
	    a->nseg > RNIC_MR_SEGS)
		return false;
	/* IBTA vol. 1, 10.6.3.1: no remote write without local write. */
	if (a->access & (RNIC_REMOTE_WRITE | RNIC_REMOTE_ATOMIC) &&
	    !(a->access & RNIC_LOCAL_WRITE))
		return false;
	if (a->dm && (!dm || a->nseg || a->addr + a->len > dm->len))
		return false;
	return segments_ok(r, a);
}

/* All but the key; checked. */
static void fill(struct rnic *r, struct rnic_mr *mr,
		 const struct rnic_mr_attr *a)
{
	mr->pdn = a->pdn;
	mr->access = (a->access & (RNIC_LKEY - 1)) | RNIC_LKEY;
	mr->qpn = 0;
	mr->space = a->space;
	mr->nseg = a->nseg;
	mr->kind = RNIC_KEY_REGION;
	mr->parent = a->dm;
	mr->iova = a->iova;
	mr->len = a->len;
	mr->addr = a->addr;
	memcpy(mr->seg, a->seg, sizeof(mr->seg));
	if (!a->dm)
		return;
	mr->space = RNIC_SPACE_ARENA;
	mr->addr += r->sh->dm[a->dm].off;
}

int rnic_mr_create(struct rnic *r, uint32_t ctx,
		   const struct rnic_mr_attr *attr, uint32_t *key)
{
	struct rnic_pd *pd = rnic_pd_get(r, ctx, attr->pdn);
	struct rnic_mr *mr;
	int err;

	if (!pd || !mr_attr_ok(r, ctx, attr))
		return EINVAL;
	if (r->sh->keys.used - r->sh->windows >= RNIC_MAX_MR - 1)
		return ENOMEM;
	err = take_key(r, key);
	if (err)
		return err;
	mr = &r->sh->mr[SF_KEY_INDEX(*key)];
	mr->ctx = ctx;
	fill(r, mr, attr);
	pd->users++;
	if (attr->dm)
		r->sh->dm[attr->dm].users++;
	store_release(&mr->key, *key);
	return 0;
}

int rnic_mr_query(const struct rnic *r, uint32_t ctx, uint32_t key,
		  struct rnic_mr_attr *attr)
{
	const struct rnic_mr *mr = region_get(r, ctx, key);

	if (!mr)
		return EINVAL;
	*attr = (struct rnic_mr_attr){
		.addr = mr->addr,
		.len = mr->len,
		.iova = mr->iova,
		.access = mr->access & (RNIC_LKEY - 1),
		.pdn = mr->pdn,
		.space = mr->space,
		.dm = mr->parent,
	};
	if (attr->dm)
		attr->addr -= r->sh->dm[attr->dm % RNIC_MAX_DM].off;
	return 0;
}

/* Is a window bound to the region? */
static bool has_windows(const struct rnic *r, const struct rnic_mr *mr)
{
	uint32_t i;

	if (!r->sh->pd[mr->pdn % RNIC_MAX_PD].windows)
		return false;
	for (i = 0; i < r->sh->keys.high; i++) {
		const struct rnic_mr *w = &r->sh->mr[i];

		if (w->live && w->kind != RNIC_KEY_REGION &&
		    w->parent == mr->last_key && load_acquire(&w->key))
			return true;
	}
	return false;
}

/*
 * Nobody finds the region from now on, or uses it.  A window may be bound to it
 * while we wait: then it stays as it was (EBUSY).  EAGAIN: nobody finds it, but
 * somebody may still use it.
 */
static int close_region(struct rnic *r, struct rnic_mr *mr)
{
	if (has_windows(r, mr))
		return EBUSY;
	__atomic_store_n(&mr->key, 0, __ATOMIC_SEQ_CST);
	if (!rnic_pd_quiesce(r, mr->pdn))
		return EAGAIN;
	if (!has_windows(r, mr))
		return 0;
	store_release(&mr->key, mr->last_key);
	return EBUSY;
}

int rnic_mr_modify(struct rnic *r, uint32_t ctx, uint32_t key, uint32_t mask,
		   const struct rnic_mr_attr *attr)
{
	struct rnic_mr *mr = region_get(r, ctx, key);
	struct rnic_mr_attr new;
	int err;

	if (!mr)
		return EINVAL;
	rnic_mr_query(r, ctx, key, &new);
	new.nseg = mr->nseg;
	memcpy(new.seg, mr->seg, sizeof(new.seg));
	if (mask & RNIC_MR_TRANSLATION) {
		if (new.dm || new.space == RNIC_SPACE_NULL)
			return EINVAL;
		new.addr = attr->addr;
		new.len = attr->len;
		new.iova = attr->iova;
		new.space = attr->space;
	}
	if (mask & RNIC_MR_PD)
		new.pdn = attr->pdn;
	if (mask & RNIC_MR_ACCESS)
		new.access = attr->access;
	/* What lies where is found out anew for both. */
	if (mask & (RNIC_MR_TRANSLATION | RNIC_MR_ACCESS)) {
		new.nseg = attr->nseg;
		memcpy(new.seg, attr->seg, sizeof(new.seg));
	}
	if (!rnic_pd_get(r, ctx, new.pdn) || !mr_attr_ok(r, ctx, &new))
		return EINVAL;
	err = close_region(r, mr);
	if (err == EAGAIN)
		store_release(&mr->key, key);
	if (err)
		return EBUSY;
	r->sh->pd[mr->pdn % RNIC_MAX_PD].users--;
	fill(r, mr, &new);
	r->sh->pd[mr->pdn].users++;
	store_release(&mr->key, key);
	return 0;
}

int rnic_mr_destroy(struct rnic *r, uint32_t ctx, uint32_t key)
{
	struct rnic_mr *mr = region_get(r, ctx, key);

	if (!mr)
		return EINVAL;
	if (close_region(r, mr))
		return EBUSY;
	mr->live = 0;
	if (mr->parent)
		r->sh->dm[mr->parent % RNIC_MAX_DM].users--;
	r->sh->pd[mr->pdn % RNIC_MAX_PD].users--;
	r->sh->keys.used--;
	return 0;
}

/* ---- windows: their life; what is bound to them is in window.c ------ */

int rnic_mw_create(struct rnic *r, uint32_t ctx, uint32_t pdn, uint32_t type,
		   uint32_t *key)
{
	struct rnic_pd *pd = rnic_pd_get(r, ctx, pdn);
	struct rnic_mr *w;
	int err;

	if (!pd || (type != 1 && type != 2))
		return EINVAL;
	if (r->sh->windows >= RNIC_MAX_MW - 1)
		return ENOMEM;
	err = take_key(r, key);
	if (err)
		return err;
	w = &r->sh->mr[SF_KEY_INDEX(*key)];
	w->pdn = pdn;
	w->ctx = ctx;
	w->qpn = 0;
	w->access = 0;
	w->len = 0;
	w->nseg = 0;
	w->parent = 0;
	w->kind = type == 1 ? RNIC_KEY_WINDOW_1 : RNIC_KEY_WINDOW_2;
	pd->users++;
	pd->windows++;
	r->sh->windows++;
	return 0;
}

int rnic_mw_destroy(struct rnic *r, uint32_t ctx, uint32_t key)
{
	struct rnic_mr *w = key_get(r, ctx, key);
	uint8_t kind;

	if (!w || w->kind == RNIC_KEY_REGION)
		return EINVAL;
	/* First nobody binds it any more, then nobody uses it any more. */
	kind = __atomic_exchange_n(&w->kind, RNIC_KEY_ENDING, __ATOMIC_SEQ_CST);
	if (!rnic_pd_quiesce(r, w->pdn)) {
		store_release(&w->kind, kind);
		return EBUSY;
	}
	__atomic_store_n(&w->key, 0, __ATOMIC_SEQ_CST);
	if (!rnic_pd_quiesce(r, w->pdn))
		return EBUSY; /* closed, and comes again */
	/* The next user's first key is not one that this window had. */
	w->last_key = (w->last_key & ~0xffu) | w->tag;
	w->live = 0;
	r->sh->pd[w->pdn % RNIC_MAX_PD].users--;
	r->sh->pd[w->pdn % RNIC_MAX_PD].windows--;
	r->sh->windows--;
	r->sh->keys.used--;
	return 0;
}

/* ---- the end of others ---------------------------------------------- */

static int reap_keys(struct rnic *r, uint32_t ctx, bool windows)
{
	int err = 0;
	uint32_t i;

	for (i = 0; i < r->sh->keys.high; i++) {
		const struct rnic_mr *mr = &r->sh->mr[i];

		if (!mr->live || mr->ctx != ctx ||
		    (mr->kind != RNIC_KEY_REGION) != windows)
			continue;
		err |= windows ? rnic_mw_destroy(r, ctx, mr->last_key) :
				 rnic_mr_destroy(r, ctx, mr->last_key);
	}
	return err;
}

int rnic_memory_reap(struct rnic *r, uint32_t ctx)
{
	int err = reap_keys(r, ctx, true);
	uint32_t i;

	err |= reap_keys(r, ctx, false);
	for (i = 0; i < r->sh->dms.high; i++)
		if (r->sh->dm[i].live && r->sh->dm[i].ctx == ctx)
			err |= rnic_dm_destroy(r, ctx, i);
	return err;
}

/* The windows of the space close; they belong to whoever has the context. */
void rnic_space_reap(struct rnic *r, uint32_t space)
{
	uint32_t i;

	for (i = 0; i < r->sh->keys.high; i++) {
		struct rnic_mr *w = &r->sh->mr[i];

		if (w->live && w->kind != RNIC_KEY_REGION && w->space == space)
			__atomic_store_n(&w->key, 0, __ATOMIC_SEQ_CST);
	}
	for (i = 0; i < r->sh->keys.high; i++) {
		const struct rnic_mr *mr = &r->sh->mr[i];

		if (mr->live && mr->kind == RNIC_KEY_REGION &&
		    mr->space == space)
			rnic_mr_destroy(r, mr->ctx, mr->last_key);
	}
}
