/* What sessions with and without a screen show, line by line. */
#include <cordon.h>
#include <stdio.h>

static void print(int failed, struct cordon_screen **given, const struct cordon_error *error)
{
    struct cordon_screen *screen = *given;

    if (failed) {
        printf("failed: %d\n", error->code);
        return;
    }
    printf("%u %u %u %u %d %d [%s] [%.*s] %zu\n", screen->rows, screen->columns, screen->cursor_row,
           screen->cursor_column, screen->cursor_visible, screen->alternate, screen->title,
           (int)screen->scrollback_len, screen->scrollback, screen->text_len);
    fputs(screen->text, stdout);
    cordon_screen_free(screen);
}

static void show(struct cordon_engine *engine, unsigned flags)
{
    const char *argv[] = {"printf", "1\n2\n3\n\033]2;t\0074", NULL};
    struct cordon_session_options options = {
        .size = sizeof options, .argv = argv, .flags = flags, .rows = 3, .columns = 20};
    struct cordon_session *session;
    struct cordon_screen *screen = NULL;
    struct cordon_error error = {0};

    if (cordon_session_start(engine, &options, &session, &error) ||
        cordon_session_wait(session, -1, &error) != 1)
        puts(error.message);
    print(cordon_session_screen(session, &screen, &error), &screen, &error);
    cordon_session_free(session);
}

static void on_answer(void *data, const struct cordon_answer *answer)
{
    *(int *)data = answer->session_id;
}

int main(void)
{
    struct cordon_engine_options options = {.size = sizeof options, .flags = CORDON_IDS_IN_ORDER};
    struct cordon_pace pace = {.size = sizeof pace, .until = CORDON_UNTIL_TEXT, .text = "ready"};
    struct cordon_exec exec = {.size = sizeof exec,
                               .cmd = "printf ready; read x",
                               .no_login = 1,
                               .flags = CORDON_TTY | CORDON_SCREEN,
                               .rows = 2,
                               .columns = 20,
                               .pace = &pace};
    struct cordon_engine *engine;
    struct cordon_screen *screen = NULL;
    struct cordon_error error = {0};
    int id = 0;

    if (cordon_open(&options, &engine, &error))
        return puts(error.message);
    show(engine, CORDON_TTY | CORDON_SCREEN);
    show(engine, CORDON_TTY);
    show(engine, CORDON_SCREEN);
    if (cordon_exec_command(engine, &exec, on_answer, &id, NULL, &error))
        puts(error.message);
    while (!id && !cordon_wait(engine, -1, &error))
        ;
    if (cordon_resize(engine, id, 2, 30, &error))
        puts(error.message);
    print(cordon_screen_of(engine, id, &screen, &error), &screen, &error);
    print(cordon_screen_of(engine, 77, &screen, &error), &screen, &error);
    cordon_screen_free(NULL);
    cordon_close(engine);
    return 0;
}
