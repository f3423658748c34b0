/*
 * vaultowner.c - whose a vault is: reads and writes `head`, and refuses what does not belong to its owner.
 *
 * Without conditional writes a PUT can arrive long after its process has died. So head is not simply believed:
 *
 *   nothing there        a new vault; unless this copy remembers a shipment that is still there: then head was lost
 *   another repository   refused
 *   this copy's          believed, unless it is older than what this copy remembers: then a late PUT has set it back
 *   another copy's       refused, or taken over; unless it is of an earlier term than this copy's: a late PUT too
 *
 * Where head was lost or set back, this copy goes on from what it remembers, and writes head again.
 */
#include "base/date.h"
#include "base/error.h"
#include "os/clock.h"
#include "os/path.h"
#include "vault/vaultshipper.h"

#include <stdio.h>
#include <unistd.h>

/* ---- messages ------------------------------------------------------------------------------------------------ */

static int refuse_repository(struct wb_vault_shipper *shipper, const struct wb_vault_head *head)
{
    char time[WB_DATE_TEXT_MAX];

    wb_date_format(head->point.time_ms, time);
    shipper->lost = true;
    return wb_fail(WB_E_DENIED,
                   "%s is the vault of another repository, which %s in %s shipped at %s: choose another URL",
                   wb_object_url(shipper->store), head->machine, head->directory, time);
}

static int refuse_copy(struct wb_vault_shipper *shipper, const struct wb_vault_head *head)
{
    char time[WB_DATE_TEXT_MAX];

    wb_date_format(head->point.time_ms, time);
    shipper->lost = true;
    return wb_fail(
        WB_E_DENIED,
        "%s belongs to another copy of this repository, on %s in %s, which shipped at %s. If this copy is to go "
        "on instead, use --take-over: then that one is refused",
        wb_object_url(shipper->store), head->machine, head->directory, time);
}

/* ---- reading ------------------------------------------------------------------------------------------------- */

/* Head as this copy remembers it: enough to find the manifest. */
static struct wb_vault_head remembered(const struct wb_vault_shipper *shipper)
{
    struct wb_vault_head head = {.term = shipper->memory.term, .shipment = shipper->memory.shipment};

    memcpy(head.repository, shipper->repository, WB_VAULT_ID_BYTES);
    memcpy(head.owner, shipper->memory.owner, WB_VAULT_ID_BYTES);
    head.point.number = shipper->memory.number;
    return head;
}

static void forget_manifest(struct wb_vault_shipper *shipper)
{
    wb_vault_manifest_release(&shipper->manifest);
}

static int load_manifest(struct wb_vault_shipper *shipper, const struct wb_vault_head *head)
{
    const struct wb_vault_objects *chain = &shipper->manifest.chain;

    if (chain->count && wb_vault_object_equal(&chain->items[chain->count - 1], &head->shipment))
        return 0;
    forget_manifest(shipper);
    int err = wb_vault_fetch_manifest(shipper->store, head, &shipper->manifest);
    if (err < 0)
        forget_manifest(shipper);
    return err == WB_E_NOTFOUND ? WB_E_CORRUPT : err;
}

/* Goes on from what this copy remembers. */
static int go_on(struct wb_vault_shipper *shipper)
{
    struct wb_vault_head head = remembered(shipper);

    shipper->rewrite = true;
    shipper->trusted = true;
    shipper->term = shipper->memory.term;
    return load_manifest(shipper, &head);
}

/* There is no head. */
static int begin(struct wb_vault_shipper *shipper)
{
    int err = 0;

    shipper->term = shipper->memory.term ? shipper->memory.term : 1;
    if (shipper->memory.number) {
        struct wb_vault_head head = remembered(shipper);
        forget_manifest(shipper);
        err = wb_vault_fetch_manifest(shipper->store, &head, &shipper->manifest);
        if (err == 0) {
            shipper->rewrite = shipper->trusted = true;
            return 0;
        }
    }
    forget_manifest(shipper);
    shipper->trusted = false;
    return err == WB_E_NOTFOUND ? 0 : err; /* everything is gone: it begins anew */
}

/* Whether what head names was shipped by this copy as the last thing that it remembers, or has just tried. */
static bool is_remembered(const struct wb_vault_shipper *shipper, const struct wb_vault_head *head)
{
    const struct wb_vault_memory *memory = &shipper->memory;

    return wb_vault_object_equal(&head->shipment, &memory->shipment) ||
           (memory->attempt && head->point.number == memory->attempt && head->shipment.run == memory->run);
}

static int judge_head(struct wb_vault_shipper *shipper, const struct wb_vault_head *head)
{
    const struct wb_vault_memory *memory = &shipper->memory;
    bool ours = memcmp(head->owner, memory->owner, WB_VAULT_ID_BYTES) == 0;

    if (memcmp(head->repository, shipper->repository, WB_VAULT_ID_BYTES) != 0)
        return refuse_repository(shipper, head);
    if (memory->number &&
        (head->term < memory->term || (ours && head->term == memory->term && head->point.number < memory->number)))
        return go_on(shipper);
    if (!ours && !shipper->options.take_over)
        return refuse_copy(shipper, head);
    shipper->rewrite = !ours;
    shipper->term = ours ? head->term : head->term + 1;
    shipper->trusted = ours && is_remembered(shipper, head);
    return load_manifest(shipper, head);
}

int wb_vault_prepare(struct wb_vault_shipper *shipper)
{
    int err = wb_vault_fetch_head(shipper->store, &shipper->head);

    shipper->has_head = err == 0;
    shipper->rewrite = false;
    if (err == WB_E_NOTFOUND)
        return begin(shipper);
    return err < 0 ? err : judge_head(shipper, &shipper->head);
}

int wb_vault_check_head(struct wb_vault_shipper *shipper)
{
    struct wb_vault_head now;
    int err = wb_vault_fetch_head(shipper->store, &now);

    if (err == WB_E_NOTFOUND && !shipper->has_head)
        return 0;
    if (err < 0)
        return err;
    if (memcmp(now.repository, shipper->repository, WB_VAULT_ID_BYTES) != 0)
        return refuse_repository(shipper, &now);
    bool same = shipper->has_head && wb_vault_object_equal(&now.shipment, &shipper->head.shipment) &&
                memcmp(now.owner, shipper->head.owner, WB_VAULT_ID_BYTES) == 0 && now.term == shipper->head.term;
    bool ours = memcmp(now.owner, shipper->memory.owner, WB_VAULT_ID_BYTES) == 0;
    if (!ours && now.term >= shipper->term && !same)
        return refuse_copy(shipper, &now);
    if (!shipper->has_head) /* it was there all the time, but could not be seen */
        return wb_fail(WB_E_BUSY, "%s: the head of the vault has just appeared: try again",
                       wb_object_url(shipper->store));
    return 0; /* a late PUT at most, which this shipment corrects */
}

/* ---- writing ------------------------------------------------------------------------------------------------- */

/* A line of printable characters. */
static void copy_line(const char *from, char *to, size_t size)
{
    size_t len = strlen(from);

    len = len < size ? len : size - 1;
    for (size_t i = 0; i < len; i++)
        to[i] = (uint8_t)from[i] < ' ' || from[i] == 0x7f ? '?' : from[i];
    to[len] = '\0';
}

static int compose_head(const struct wb_vault_shipper *shipper, struct wb_vault_head *head)
{
    const struct wb_vault_manifest *manifest = &shipper->manifest;
    char machine[WB_VAULT_MACHINE_MAX + 1] = "";
    char *directory = wb_path_real(shipper->dir);
    bool ours = shipper->has_head && memcmp(shipper->head.owner, shipper->memory.owner, WB_VAULT_ID_BYTES) == 0;

    if (!directory)
        return WB_E_IO;
    if (gethostname(machine, sizeof machine - 1) != 0)
        snprintf(machine, sizeof machine, "unknown");
    memcpy(head->repository, shipper->repository, WB_VAULT_ID_BYTES);
    memcpy(head->owner, shipper->memory.owner, WB_VAULT_ID_BYTES);
    head->term = shipper->term;
    head->owned_ms = ours && shipper->head.term == shipper->term ? shipper->head.owned_ms : wb_clock_wall_ms();
    copy_line(machine, head->machine, sizeof head->machine);
    copy_line(directory, head->directory, sizeof head->directory);
    head->shipment = manifest->chain.items[manifest->chain.count - 1];
    head->point = manifest->points.items[manifest->points.count - 1];
    wb_free(directory);
    return 0;
}

int wb_vault_put_head(struct wb_vault_shipper *shipper)
{
    struct wb_vault_head *head = wb_alloc_zero(1, sizeof *head);
    struct wb_buf contents = WB_BUF_INIT, bytes = WB_BUF_INIT;
    struct wb_vault_object object;
    int err = head ? compose_head(shipper, head) : WB_E_NOMEM;

    if (err == 0)
        err = wb_vault_head_encode(head, &contents);
    if (err == 0)
        err = wb_vault_object_pack(WB_VAULT_HEAD, wb_buf_slice(&contents), false, &bytes, &object);
    if (err == 0)
        err = wb_object_put(shipper->store, WB_VAULT_HEAD_NAME, wb_buf_slice(&bytes));
    if (err == 0) {
        shipper->head = *head;
        shipper->has_head = true;
        shipper->rewrite = false;
    }
    wb_buf_release(&contents);
    wb_buf_release(&bytes);
    wb_free(head);
    return err;
}
