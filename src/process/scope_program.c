/* cordon-scope: asks systemd for a scope and stays in it.
 *
 *     cordon-scope LAUNCHER MEMORY PIDS      (a pid, bytes, a count; 0: none)
 *
 *     StartTransientUnit(scope with PIDs = LAUNCHER and this program)  ->  job
 *     JobRemoved(job, result)   ->  "ok" on stdout  ->  wait for the end of stdin
 *
 * The user's systemd is asked, and by root the system's. It moves the processes itself, also out of a
 * session whose cgroup is root's, and removes the scope when no process is in it: so that nothing is
 * left behind, however all this ends. Delegate=yes, since what the kernel kills at the limit
 * shall not make systemd stop the rest (OOMPolicy). */
#include "process/scope.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#define CALL_US UINT64_C(1900000) /* a little less than our caller waits */

#define SYSTEMD "org.freedesktop.systemd1"
#define MANAGER "/org/freedesktop/systemd1", SYSTEMD ".Manager"

struct order {
    uint32_t launcher;
    uint64_t memory;
    uint64_t pids;
};

/* What became of our job. */
struct outcome {
    const char *job; /* its path; NULL: not known yet */
    char result[32]; /* "done", "failed", ...; "": not yet */
};

static int on_job_removed(sd_bus_message *message, void *data, sd_bus_error *error)
{
    struct outcome *outcome = data;
    const char *job, *unit, *result;
    uint32_t id;

    (void)error;
    if (sd_bus_message_read(message, "uoss", &id, &job, &unit, &result) >= 0 && outcome->job &&
        strcmp(job, outcome->job) == 0)
        snprintf(outcome->result, sizeof outcome->result, "%s", result);
    return 0;
}

static int add_number(sd_bus_message *message, const char *name, uint64_t value)
{
    return value ? sd_bus_message_append(message, "(sv)", name, "t", value) : 0;
}

static int fill(sd_bus_message *message, const struct order *order)
{
    char name[64];
    int status;

    /* two of us are never one process at a time; who has our number in another pid namespace is refused */
    snprintf(name, sizeof name, SCOPE_NAME, (int)getpid());
    if ((status = sd_bus_message_append(message, "ss", name, "fail")) < 0 ||
        (status = sd_bus_message_open_container(message, 'a', "(sv)")) < 0 ||
        (status = order->launcher ? sd_bus_message_append(message, "(sv)", "PIDs", "au", 2,
                                                          order->launcher, (uint32_t)getpid())
                                  : sd_bus_message_append(message, "(sv)", "PIDs", "au", 1,
                                                          (uint32_t)getpid())) < 0 ||
        (status = sd_bus_message_append(message, "(sv)", "Description", "s",
                                        "A command that Cordon runs")) < 0 ||
        (status = sd_bus_message_append(message, "(sv)", "Delegate", "b", 1)) < 0 ||
        (status = sd_bus_message_append(message, "(sv)", "CollectMode", "s",
                                        "inactive-or-failed")) < 0 ||
        (status = add_number(message, "MemoryMax", order->memory)) < 0 ||
        (status = order->memory
                      ? sd_bus_message_append(message, "(sv)", "MemorySwapMax", "t", UINT64_C(0))
                      : 0) < 0 ||
        (status = add_number(message, "TasksMax", order->pids ? order->pids + 1 : 0)) < 0 ||
        (status = sd_bus_message_close_container(message)) < 0)
        return status;
    return sd_bus_message_append(message, "a(sa(sv))", 0);
}

/* Until systemd has done it. The job may be over before we know its name, but not before we read that. */
static int await(sd_bus *bus, const struct outcome *outcome)
{
    while (!*outcome->result) {
        int status = sd_bus_process(bus, NULL);

        if (status == 0 && (status = sd_bus_wait(bus, CALL_US)) == 0)
            return -ETIMEDOUT;
        if (status < 0)
            return status;
    }
    return 0;
}

/* Negative errno; with a text in `ret_error` where systemd has one. */
static int ask(sd_bus *bus, const struct order *order, struct outcome *outcome,
               sd_bus_error *ret_error)
{
    sd_bus_message *call = NULL;
    sd_bus_message *answer = NULL;
    int status;

    if ((status = sd_bus_match_signal(bus, NULL, SYSTEMD, MANAGER, "JobRemoved", on_job_removed,
                                      outcome)) >= 0 &&
        (status = sd_bus_call_method(bus, SYSTEMD, MANAGER, "Subscribe", ret_error, NULL, NULL)) >=
            0 &&
        (status = sd_bus_message_new_method_call(bus, &call, SYSTEMD, MANAGER,
                                                 "StartTransientUnit")) >= 0 &&
        (status = fill(call, order)) >= 0 &&
        (status = sd_bus_call(bus, call, CALL_US, ret_error, &answer)) >= 0 &&
        (status = sd_bus_message_read(answer, "o", &outcome->job)) >= 0)
        status = await(bus, outcome);
    outcome->job = NULL; /* it is the answer's */
    sd_bus_message_unref(call);
    sd_bus_message_unref(answer);
    return status;
}

static int say(const char *text)
{
    printf("%.*s\n", (int)strcspn(text, "\n"), text);
    return fflush(stdout) ? 1 : 0;
}

int main(int argc, char **argv)
{
    sd_bus_error error = SD_BUS_ERROR_NULL;
    struct outcome outcome = {0};
    struct order order = {0};
    sd_bus *bus = NULL;
    char byte;
    int status;

    if (argc != 4)
        return 2;
    order.launcher = (uint32_t)strtoul(argv[1], NULL, 10);
    order.memory = strtoull(argv[2], NULL, 10);
    order.pids = strtoull(argv[3], NULL, 10);
    status = geteuid() == 0 ? sd_bus_open_system(&bus) : sd_bus_open_user(&bus);
    if (status < 0) {
        printf("no D-Bus to %s's systemd: ", geteuid() == 0 ? "the system" : "the user");
        return say(status == -ENOMEDIUM ? "its address is not set" : strerror(-status));
    }
    sd_bus_set_method_call_timeout(bus, CALL_US);
    status = ask(bus, &order, &outcome, &error);
    if (status < 0)
        return say(error.message ? error.message : strerror(-status));
    if (strcmp(outcome.result, "done") != 0)
        return say(outcome.result);
    if (say("ok"))
        return 1;
    while (read(STDIN_FILENO, &byte, 1) > 0)
        continue;
    return 0;
}
