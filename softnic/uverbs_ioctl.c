// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * ioctl(RDMA_VERBS_IOCTL): a header and a list of attributes.  Which ones a
 * method takes is in tables; what they say is up to the method.
 */
#include "softnic/uverbs_cmd.h"

/* ---- what a method takes --------------------------------------------- */

enum attr_kind {
	ATTR_UNKNOWN,
	ATTR_IN, /* up to 8 bytes in the attribute, more behind a pointer */
	ATTR_OUT,
	ATTR_OBJECT,	 /* number of an object */
	ATTR_NEW_OBJECT, /* the new object's number goes here */
	ATTR_FD,
	ATTR_NEW_FD,
};

struct attr_spec {
	uint8_t kind;
	bool required;
	uint16_t min;
	uint16_t max;
};

#define ANY_LONGER UINT16_MAX
#define IN(size)                          \
	{                                 \
		ATTR_IN, true, size, size \
	}
#define IN_OPT(size)                       \
	{                                  \
		ATTR_IN, false, size, size \
	}
#define IN_LONGER(min)                         \
	{                                      \
		ATTR_IN, true, min, ANY_LONGER \
	}
#define FLAGS_OPT                    \
	{                            \
		ATTR_IN, false, 4, 8 \
	}
#define FLAGS                       \
	{                           \
		ATTR_IN, true, 4, 8 \
	}
#define OUT(size)                          \
	{                                  \
		ATTR_OUT, true, size, size \
	}
#define OUT_OPT(size)                       \
	{                                   \
		ATTR_OUT, false, size, size \
	}
#define OUT_LONGER(min)                         \
	{                                       \
		ATTR_OUT, true, min, ANY_LONGER \
	}
#define OBJECT                          \
	{                               \
		ATTR_OBJECT, true, 0, 0 \
	}
#define OBJECT_OPT                       \
	{                                \
		ATTR_OBJECT, false, 0, 0 \
	}
#define NEW_OBJECT                          \
	{                                   \
		ATTR_NEW_OBJECT, true, 0, 0 \
	}
/* Of the driver's own methods: the two attributes have other uses. */
#define DRIVER_QUERY(size)                                                  \
	[UVERBS_SLOT_UHW_IN] = OBJECT, [UVERBS_SLOT_UHW_OUT] = {ATTR_OUT,   \
								true, size, \
								ANY_LONGER}
#define FD_OPT                       \
	{                            \
		ATTR_FD, false, 0, 0 \
	}
#define NEW_FD                          \
	{                               \
		ATTR_NEW_FD, true, 0, 0 \
	}
#define DRIVER_IN                             \
	{                                     \
		ATTR_IN, false, 0, ANY_LONGER \
	}
#define DRIVER_OUT                             \
	{                                      \
		ATTR_OUT, false, 0, ANY_LONGER \
	}
#define DRIVER \
	[UVERBS_SLOT_UHW_IN] = DRIVER_IN, [UVERBS_SLOT_UHW_OUT] = DRIVER_OUT

struct ioctl_method {
	uint16_t object;
	uint16_t method;
	int (*call)(struct uverbs_cmd *c);
	struct attr_spec attr[UVERBS_SLOTS];
};

static int invoke_write(struct uverbs_cmd *c)
{
	return uverbs_invoke(c, c->attr[UVERBS_ATTR_WRITE_CMD].value);
}

_Static_assert((int)SCALEFABRIC_QUERY_CONTEXT_RESP ==
			       (int)UVERBS_ATTR_UHW_OUT &&
		       (int)SCALEFABRIC_QUERY_HANDLE ==
			       (int)UVERBS_ATTR_UHW_IN &&
		       (int)SCALEFABRIC_QUERY_RESP == (int)UVERBS_ATTR_UHW_OUT,
	       "attributes of the driver have these two slots");

static const struct ioctl_method ioctl_methods[] = {
	{UVERBS_OBJECT_DEVICE,
	 UVERBS_METHOD_INVOKE_WRITE,
	 invoke_write,
	 {
		 [UVERBS_ATTR_CORE_IN] = DRIVER_IN,
		 [UVERBS_ATTR_CORE_OUT] = DRIVER_OUT,
		 [UVERBS_ATTR_WRITE_CMD] = IN(8),
		 DRIVER,
	 }},
	{UVERBS_OBJECT_DEVICE,
	 UVERBS_METHOD_QUERY_PORT,
	 uverbs_ioctl_query_port,
	 {
		 [UVERBS_ATTR_QUERY_PORT_PORT_NUM] = IN(8),
		 [UVERBS_ATTR_QUERY_PORT_RESP] = OUT_LONGER(offsetof(
			 struct ib_uverbs_query_port_resp_ex, reserved)),
	 }},
	{UVERBS_OBJECT_DEVICE,
	 UVERBS_METHOD_GET_CONTEXT,
	 uverbs_ioctl_get_context,
	 {
		 [UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS] = OUT_OPT(4),
		 [UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT] = OUT_OPT(8),
		 DRIVER,
	 }},
	{UVERBS_OBJECT_DEVICE,
	 UVERBS_METHOD_QUERY_CONTEXT,
	 uverbs_ioctl_query_context,
	 {
		 [UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS] = OUT_OPT(4),
		 [UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT] = OUT_OPT(8),
		 DRIVER,
	 }},
	{UVERBS_OBJECT_DEVICE,
	 UVERBS_METHOD_QUERY_GID_TABLE,
	 uverbs_ioctl_query_gid_table,
	 {
		 [UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE] = IN(8),
		 [UVERBS_ATTR_QUERY_GID_TABLE_FLAGS] = FLAGS_OPT,
		 [UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES] = OUT_LONGER(0),
		 [UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES] = OUT(8),
	 }},
	{UVERBS_OBJECT_DEVICE,
	 UVERBS_METHOD_QUERY_GID_ENTRY,
	 uverbs_ioctl_query_gid_entry,
	 {
		 [UVERBS_ATTR_QUERY_GID_ENTRY_PORT] = IN(8),
		 [UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX] = IN(8),
		 [UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS] = FLAGS,
		 [UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY] =
			 OUT_LONGER(sizeof(struct ib_uverbs_gid_entry)),
	 }},
	{UVERBS_OBJECT_ASYNC_EVENT,
	 UVERBS_METHOD_ASYNC_EVENT_ALLOC,
	 uverbs_ioctl_alloc_async_fd,
	 {
		 [UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE] = NEW_FD,
	 }},
	{UVERBS_OBJECT_PD,
	 UVERBS_METHOD_PD_DESTROY,
	 uverbs_ioctl_destroy_pd,
	 {
		 [UVERBS_ATTR_DESTROY_PD_HANDLE] = OBJECT,
	 }},
	{UVERBS_OBJECT_PD,
	 SCALEFABRIC_PD_QUERY,
	 uverbs_ioctl_query_pd,
	 {
		 DRIVER_QUERY(sizeof(struct scalefabric_alloc_pd_resp)),
	 }},
	{UVERBS_OBJECT_MR,
	 UVERBS_METHOD_QUERY_MR,
	 uverbs_ioctl_query_mr,
	 {
		 [UVERBS_ATTR_QUERY_MR_HANDLE] = OBJECT,
		 [UVERBS_ATTR_QUERY_MR_RESP_LKEY] = OUT(4),
		 [UVERBS_ATTR_QUERY_MR_RESP_RKEY] = OUT(4),
		 [UVERBS_ATTR_QUERY_MR_RESP_LENGTH] = OUT(8),
		 [UVERBS_ATTR_QUERY_MR_RESP_IOVA] = OUT_OPT(8),
	 }},
	{UVERBS_OBJECT_MR,
	 UVERBS_METHOD_ADVISE_MR,
	 uverbs_ioctl_advise_mr,
	 {
		 [UVERBS_ATTR_ADVISE_MR_PD_HANDLE] = OBJECT,
		 [UVERBS_ATTR_ADVISE_MR_ADVICE] = IN(8),
		 [UVERBS_ATTR_ADVISE_MR_FLAGS] = FLAGS,
		 [UVERBS_ATTR_ADVISE_MR_SGE_LIST] =
			 IN_LONGER(sizeof(struct ib_uverbs_sge)),
	 }},
	{UVERBS_OBJECT_MR,
	 UVERBS_METHOD_DM_MR_REG,
	 uverbs_ioctl_reg_dm_mr,
	 {
		 [UVERBS_ATTR_REG_DM_MR_HANDLE] = NEW_OBJECT,
		 [UVERBS_ATTR_REG_DM_MR_OFFSET] = IN(8),
		 [UVERBS_ATTR_REG_DM_MR_LENGTH] = IN(8),
		 [UVERBS_ATTR_REG_DM_MR_PD_HANDLE] = OBJECT,
		 [UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS] = FLAGS,
		 [UVERBS_ATTR_REG_DM_MR_DM_HANDLE] = OBJECT,
		 [UVERBS_ATTR_REG_DM_MR_RESP_LKEY] = OUT(4),
		 [UVERBS_ATTR_REG_DM_MR_RESP_RKEY] = OUT(4),
	 }},
	{UVERBS_OBJECT_MR,
	 UVERBS_METHOD_REG_DMABUF_MR,
	 uverbs_ioctl_reg_dmabuf_mr,
	 {
		 [UVERBS_ATTR_REG_DMABUF_MR_HANDLE] = NEW_OBJECT,
		 [UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE] = OBJECT,
		 [UVERBS_ATTR_REG_DMABUF_MR_OFFSET] = IN(8),
		 [UVERBS_ATTR_REG_DMABUF_MR_LENGTH] = IN(8),
		 [UVERBS_ATTR_REG_DMABUF_MR_IOVA] = IN(8),
		 /* As a number or as a descriptor. */
		 [UVERBS_ATTR_REG_DMABUF_MR_FD] = {ATTR_IN, true, 0, 4},
		 [UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS] = FLAGS,
		 [UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY] = OUT(4),
		 [UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY] = OUT(4),
	 }},
	{UVERBS_OBJECT_MW,
	 UVERBS_METHOD_MW_DESTROY,
	 uverbs_ioctl_destroy_mw,
	 {
		 [UVERBS_ATTR_DESTROY_MW_HANDLE] = OBJECT,
	 }},
	{UVERBS_OBJECT_DM,
	 UVERBS_METHOD_DM_ALLOC,
	 uverbs_ioctl_alloc_dm,
	 {
		 [UVERBS_ATTR_ALLOC_DM_HANDLE] = NEW_OBJECT,
		 [UVERBS_ATTR_ALLOC_DM_LENGTH] = IN(8),
		 [UVERBS_ATTR_ALLOC_DM_ALIGNMENT] = IN(4),
	 }},
	{UVERBS_OBJECT_DM,
	 UVERBS_METHOD_DM_FREE,
	 uverbs_ioctl_free_dm,
	 {
		 [UVERBS_ATTR_FREE_DM_HANDLE] = OBJECT,
	 }},
	{UVERBS_OBJECT_DM,
	 SCALEFABRIC_DM_QUERY,
	 uverbs_ioctl_query_dm,
	 {
		 DRIVER_QUERY(sizeof(struct scalefabric_query_dm_resp)),
	 }},
	{UVERBS_OBJECT_MR,
	 UVERBS_METHOD_MR_DESTROY,
	 uverbs_ioctl_destroy_mr,
	 {
		 [UVERBS_ATTR_DESTROY_MR_HANDLE] = OBJECT,
	 }},
	{UVERBS_OBJECT_CQ,
	 UVERBS_METHOD_CQ_CREATE,
	 uverbs_ioctl_create_cq,
	 {
		 [UVERBS_ATTR_CREATE_CQ_HANDLE] = NEW_OBJECT,
		 [UVERBS_ATTR_CREATE_CQ_CQE] = IN(4),
		 [UVERBS_ATTR_CREATE_CQ_USER_HANDLE] = IN(8),
		 [UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL] = FD_OPT,
		 [UVERBS_ATTR_CREATE_CQ_COMP_VECTOR] = IN(4),
		 [UVERBS_ATTR_CREATE_CQ_FLAGS] = FLAGS_OPT,
		 [UVERBS_ATTR_CREATE_CQ_RESP_CQE] = OUT(4),
		 [UVERBS_ATTR_CREATE_CQ_EVENT_FD] = FD_OPT,
		 DRIVER,
	 }},
	{UVERBS_OBJECT_CQ,
	 UVERBS_METHOD_CQ_DESTROY,
	 uverbs_ioctl_destroy_cq,
	 {
		 [UVERBS_ATTR_DESTROY_CQ_HANDLE] = OBJECT,
		 [UVERBS_ATTR_DESTROY_CQ_RESP] =
			 OUT(sizeof(struct ib_uverbs_destroy_cq_resp)),
	 }},
	{UVERBS_OBJECT_AH,
	 UVERBS_METHOD_AH_DESTROY,
	 uverbs_ioctl_destroy_ah,
	 {
		 [UVERBS_ATTR_DESTROY_AH_HANDLE] = OBJECT,
	 }},
	{UVERBS_OBJECT_XRCD,
	 UVERBS_METHOD_XRCD_DESTROY,
	 uverbs_ioctl_destroy_xrcd,
	 {
		 [UVERBS_ATTR_DESTROY_XRCD_HANDLE] = OBJECT,
	 }},
	{UVERBS_OBJECT_SRQ,
	 UVERBS_METHOD_SRQ_CREATE,
	 uverbs_ioctl_create_srq,
	 {
		 [UVERBS_ATTR_CREATE_SRQ_HANDLE] = NEW_OBJECT,
		 [UVERBS_ATTR_CREATE_SRQ_PD_HANDLE] = OBJECT,
		 [UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE] = OBJECT_OPT,
		 [UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE] = OBJECT_OPT,
		 [UVERBS_ATTR_CREATE_SRQ_USER_HANDLE] = IN(8),
		 [UVERBS_ATTR_CREATE_SRQ_MAX_WR] = IN(4),
		 [UVERBS_ATTR_CREATE_SRQ_MAX_SGE] = IN(4),
		 [UVERBS_ATTR_CREATE_SRQ_LIMIT] = IN(4),
		 [UVERBS_ATTR_CREATE_SRQ_MAX_NUM_TAGS] = IN_OPT(4),
		 [UVERBS_ATTR_CREATE_SRQ_TYPE] = IN(8),
		 [UVERBS_ATTR_CREATE_SRQ_EVENT_FD] = FD_OPT,
		 [UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR] = OUT(4),
		 [UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE] = OUT(4),
		 [UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM] = OUT_OPT(4),
		 DRIVER,
	 }},
	{UVERBS_OBJECT_SRQ,
	 UVERBS_METHOD_SRQ_DESTROY,
	 uverbs_ioctl_destroy_srq,
	 {
		 [UVERBS_ATTR_DESTROY_SRQ_HANDLE] = OBJECT,
		 [UVERBS_ATTR_DESTROY_SRQ_RESP] =
			 OUT(sizeof(struct ib_uverbs_destroy_srq_resp)),
	 }},
	{UVERBS_OBJECT_QP,
	 UVERBS_METHOD_QP_CREATE,
	 uverbs_ioctl_create_qp,
	 {
		 [UVERBS_ATTR_CREATE_QP_HANDLE] = NEW_OBJECT,
		 [UVERBS_ATTR_CREATE_QP_XRCD_HANDLE] = OBJECT_OPT,
		 [UVERBS_ATTR_CREATE_QP_PD_HANDLE] = OBJECT_OPT,
		 [UVERBS_ATTR_CREATE_QP_SRQ_HANDLE] = OBJECT_OPT,
		 [UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE] = OBJECT_OPT,
		 [UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE] = OBJECT_OPT,
		 [UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE] = OBJECT_OPT,
		 [UVERBS_ATTR_CREATE_QP_USER_HANDLE] = IN(8),
		 [UVERBS_ATTR_CREATE_QP_CAP] =
			 IN(sizeof(struct ib_uverbs_qp_cap)),
		 [UVERBS_ATTR_CREATE_QP_TYPE] = IN(8),
		 [UVERBS_ATTR_CREATE_QP_FLAGS] = FLAGS_OPT,
		 [UVERBS_ATTR_CREATE_QP_SOURCE_QPN] = IN_OPT(4),
		 [UVERBS_ATTR_CREATE_QP_EVENT_FD] = FD_OPT,
		 [UVERBS_ATTR_CREATE_QP_RESP_CAP] =
			 OUT(sizeof(struct ib_uverbs_qp_cap)),
		 [UVERBS_ATTR_CREATE_QP_RESP_QP_NUM] = OUT(4),
		 DRIVER,
	 }},
	{UVERBS_OBJECT_QP,
	 UVERBS_METHOD_QP_DESTROY,
	 uverbs_ioctl_destroy_qp,
	 {
		 [UVERBS_ATTR_DESTROY_QP_HANDLE] = OBJECT,
		 [UVERBS_ATTR_DESTROY_QP_RESP] =
			 OUT(sizeof(struct ib_uverbs_destroy_qp_resp)),
	 }},
	{UVERBS_OBJECT_WQ,
	 UVERBS_METHOD_WQ_CREATE,
	 uverbs_ioctl_create_wq,
	 {
		 [UVERBS_ATTR_CREATE_WQ_HANDLE] = NEW_OBJECT,
		 [UVERBS_ATTR_CREATE_WQ_PD_HANDLE] = OBJECT,
		 [UVERBS_ATTR_CREATE_WQ_CQ_HANDLE] = OBJECT,
		 [UVERBS_ATTR_CREATE_WQ_USER_HANDLE] = IN(8),
		 [UVERBS_ATTR_CREATE_WQ_TYPE] = IN(8),
		 [UVERBS_ATTR_CREATE_WQ_EVENT_FD] = FD_OPT,
		 [UVERBS_ATTR_CREATE_WQ_MAX_WR] = IN(4),
		 [UVERBS_ATTR_CREATE_WQ_MAX_SGE] = IN(4),
		 [UVERBS_ATTR_CREATE_WQ_FLAGS] = FLAGS,
		 [UVERBS_ATTR_CREATE_WQ_RESP_MAX_WR] = OUT(4),
		 [UVERBS_ATTR_CREATE_WQ_RESP_MAX_SGE] = OUT(4),
		 [UVERBS_ATTR_CREATE_WQ_RESP_WQ_NUM] = OUT_OPT(4),
		 DRIVER,
	 }},
	{UVERBS_OBJECT_WQ,
	 UVERBS_METHOD_WQ_DESTROY,
	 uverbs_ioctl_destroy_wq,
	 {
		 [UVERBS_ATTR_DESTROY_WQ_HANDLE] = OBJECT,
		 [UVERBS_ATTR_DESTROY_WQ_RESP] = OUT(4),
	 }},
	{UVERBS_OBJECT_RWQ_IND_TBL,
	 UVERBS_METHOD_RWQ_IND_TBL_DESTROY,
	 uverbs_ioctl_destroy_wq_table,
	 {
		 [UVERBS_ATTR_DESTROY_RWQ_IND_TBL_HANDLE] = OBJECT,
	 }},
	{UVERBS_OBJECT_FLOW,
	 UVERBS_METHOD_FLOW_DESTROY,
	 uverbs_ioctl_destroy_flow,
	 {
		 [UVERBS_ATTR_DESTROY_FLOW_HANDLE] = OBJECT,
	 }},
	{UVERBS_OBJECT_COUNTERS,
	 UVERBS_METHOD_COUNTERS_CREATE,
	 uverbs_ioctl_create_counters,
	 {
		 [UVERBS_ATTR_CREATE_COUNTERS_HANDLE] = NEW_OBJECT,
	 }},
	{UVERBS_OBJECT_COUNTERS,
	 UVERBS_METHOD_COUNTERS_DESTROY,
	 uverbs_ioctl_destroy_counters,
	 {
		 [UVERBS_ATTR_DESTROY_COUNTERS_HANDLE] = OBJECT,
	 }},
	{UVERBS_OBJECT_COUNTERS,
	 UVERBS_METHOD_COUNTERS_READ,
	 uverbs_ioctl_read_counters,
	 {
		 [UVERBS_ATTR_READ_COUNTERS_HANDLE] = OBJECT,
		 [UVERBS_ATTR_READ_COUNTERS_BUFF] = OUT_LONGER(0),
		 [UVERBS_ATTR_READ_COUNTERS_FLAGS] = FLAGS,
	 }},
};

static const struct ioctl_method *find_method(uint16_t object, uint16_t method)
{
	size_t i;

	for (i = 0; i < sizeof(ioctl_methods) / sizeof(ioctl_methods[0]); i++)
		if (ioctl_methods[i].object == object &&
		    ioctl_methods[i].method == method)
			return &ioctl_methods[i];
	return NULL;
}

/* ---- the caller's list ----------------------------------------------- */

/* A list that libibverbs makes is a tenth of this. */
#define MAX_ATTRS 64

struct attr_list {
	struct ib_uverbs_attr attr[MAX_ATTRS];
	uint8_t slot[MAX_ATTRS]; /* UVERBS_SLOTS: ignored */
	uint16_t count;
};

static int find_slot(uint16_t id)
{
	if (id < UVERBS_CORE_ATTRS)
		return id;
	if (id == UVERBS_ATTR_UHW_IN)
		return UVERBS_SLOT_UHW_IN;
	if (id == UVERBS_ATTR_UHW_OUT)
		return UVERBS_SLOT_UHW_OUT;
	return UVERBS_SLOTS;
}

static int check_attr(const struct attr_spec *spec,
		      const struct ib_uverbs_attr *attr)
{
	if (attr->attr_data.reserved)
		return EINVAL;
	if (attr->len < spec->min || attr->len > spec->max)
		return EINVAL;
	switch (spec->kind) {
	case ATTR_OBJECT:
		return attr->data > UINT32_MAX ? EINVAL : 0;
	case ATTR_FD:
		return attr->data > INT32_MAX ? EBADF : 0;
	default:
		return 0;
	}
}

static void set_buf(struct uverbs_buf *buf, const struct attr_spec *spec,
		    const struct ib_uverbs_attr *attr)
{
	buf->present = true;
	buf->out = spec->kind == ATTR_OUT;
	buf->len = attr->len;
	buf->addr = attr->data;
	if (buf->out)
		return;
	buf->value = attr->data;
	if (attr->len <= sizeof(buf->value)) {
		buf->addr = (uintptr_t)&buf->value;
		if (attr->len == sizeof(uint32_t))
			buf->value = (uint32_t)buf->value;
	}
}

static int take_attr(struct uverbs_cmd *c, const struct ioctl_method *m,
		     struct attr_list *list, int i)
{
	const struct ib_uverbs_attr *attr = &list->attr[i];
	int slot = find_slot(attr->attr_id);
	int err;

	if (slot == UVERBS_SLOTS || m->attr[slot].kind == ATTR_UNKNOWN) {
		list->slot[i] = UVERBS_SLOTS;
		return attr->flags & UVERBS_ATTR_F_MANDATORY ? EPROTONOSUPPORT :
							       0;
	}
	if (c->attr[slot].present)
		return EINVAL;
	err = check_attr(&m->attr[slot], attr);
	if (err)
		return err;
	list->slot[i] = slot;
	set_buf(&c->attr[slot], &m->attr[slot], attr);
	return 0;
}

static int take_attrs(struct uverbs_cmd *c, const struct ioctl_method *m,
		      struct attr_list *list)
{
	int i, err;

	for (i = 0; i < list->count; i++) {
		err = take_attr(c, m, list, i);
		if (err)
			return err;
	}
	for (i = 0; i < UVERBS_SLOTS; i++)
		if (m->attr[i].required && !c->attr[i].present)
			return EINVAL;
	return 0;
}

/* New numbers, and marks on the answers that were written. */
static int answer_attr(const struct uverbs_cmd *c, const struct ioctl_method *m,
		       struct ib_uverbs_attr *attr, uint8_t slot, uint64_t addr)
{
	switch (slot < UVERBS_SLOTS ? m->attr[slot].kind : ATTR_UNKNOWN) {
	case ATTR_NEW_OBJECT:
	case ATTR_NEW_FD:
		attr->data = c->result;
		return uverbs_copy_out(addr + offsetof(typeof(*attr), data),
				       &attr->data, sizeof(attr->data));
	case ATTR_OUT:
		if (!c->attr[slot].written)
			return 0;
		attr->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
		return uverbs_copy_out(addr + offsetof(typeof(*attr), flags),
				       &attr->flags, sizeof(attr->flags));
	default:
		return 0;
	}
}

static int answer_attrs(const struct uverbs_cmd *c,
			const struct ioctl_method *m, struct attr_list *list)
{
	int i, err = 0;

	for (i = 0; i < list->count && !err; i++)
		err = answer_attr(c, m, &list->attr[i], list->slot[i],
				  c->list.addr + i * sizeof(list->attr[i]));
	return err;
}

/* ---- entry ----------------------------------------------------------- */

static int check_header(const struct ib_uverbs_ioctl_hdr *hdr)
{
	if (hdr->length !=
	    sizeof(*hdr) + hdr->num_attrs * sizeof(hdr->attrs[0]))
		return EINVAL;
	if (hdr->num_attrs > MAX_ATTRS)
		return EINVAL;
	if (hdr->reserved1 || hdr->reserved2)
		return EPROTONOSUPPORT;
	return 0;
}

int uverbs_ioctl(const struct uverbs_ops *ops, uint32_t ctx, uint32_t dev,
		 void *arg)
{
	struct uverbs_cmd c = {.ops = ops, .ctx = ctx, .dev = dev};
	const struct ioctl_method *m;
	struct ib_uverbs_ioctl_hdr hdr;
	struct attr_list list;
	int err;

	err = uverbs_copy_in(&hdr, (uintptr_t)arg, sizeof(hdr));
	if (!err)
		err = check_header(&hdr);
	if (err)
		return err;
	m = find_method(hdr.object_id, hdr.method_id);
	if (!m)
		return EPROTONOSUPPORT;
	if (hdr.driver_id != RDMA_DRIVER_UNKNOWN)
		return EINVAL;
	list.count = hdr.num_attrs;
	c.list = (struct uverbs_buf){
		.addr = (uintptr_t)arg + sizeof(hdr),
		.len = hdr.num_attrs * sizeof(list.attr[0]),
		.present = true,
		.out = true,
	};
	err = uverbs_copy_in(list.attr, c.list.addr, c.list.len);
	if (!err)
		err = take_attrs(&c, m, &list);
	if (!err)
		err = m->call(&c);
	if (!err)
		err = answer_attrs(&c, m, &list);
	return err;
}
