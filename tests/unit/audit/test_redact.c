/* redact: what is taken out of command lines, and what stays. */
#include "audit/redact.h"

#include "base/auto.h"
#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *const env[] = {(char *)"PATH=/usr/bin",
                            (char *)"DEPLOY_TOKEN=hunter2-and-more",
                            (char *)"SHORT_KEY=abc",
                            (char *)"LEAST_KEY=sesame",
                            (char *)"EMPTY_SECRET=",
                            (char *)"ODD",
                            NULL};

static const char *const texts_and_results[][2] = {
    {"make -j4 test", "make -j4 test"},
    {"", ""},
    {"echo hunter2-and-more", "echo [redacted]"},
    {"xhunter2-and-morex", "x[redacted]x"},
    {"ls /usr/bin abc", "ls /usr/bin abc"},
    {"open sesame sesam", "open [redacted] sesam"},
    {"API_KEY=abc make", "API_KEY=[redacted] make"},
    {"PGPASSWORD='a b' psql", "PGPASSWORD='[redacted] b' psql"},
    {"--token=abc&x=1", "--token=[redacted]&x=1"},
    {"mysql --password hunter -u me", "mysql --password [redacted] -u me"},
    {"tool --token --verbose", "tool --token --verbose"},
    {"curl -H 'Authorization: Bearer abc def' x", "curl -H 'Authorization: [redacted]' x"},
    {"{\"secret\": \"abc\", \"a\": 1}", "{\"secret\": \"[redacted]\", \"a\": 1}"},
    {"git clone https://me:pw@host/x", "git clone https://me:[redacted]@host/x"},
    {"curl https://me:p:w@host/x", "curl https://me:[redacted]@host/x"},
    {"curl https://me::w:@host/x", "curl https://me:[redacted]@host/x"},
    {"curl https://me:p@w@host/x", "curl https://me:[redacted]@host/x"},
    {"x://a:hunter2-and-more.:b@h", "x://a:[redacted].:[redacted]@h"},
    {"git clone https://host:8080/x@1", "git clone https://host:8080/x@1"},
    {"scp file me@host:dir", "scp file me@host:dir"},
    {"x ghp_0123456789abcdefghij y", "x [redacted] y"},
    {"sk-learn", "sk-learn"},
    {"AKIAIOSFODNN7EXAMPLE", "[redacted]"},
    {"a = b : c", "a = b : c"},
    {"key= value", "key= value"},
    {"curl -u me:pw https://host", "curl -u [redacted] https://host"},
    {"curl -sume:pw x; ls -u", "curl -sume:pw x; ls -u"},
    {"curl -ume:pw x", "curl -u[redacted] x"},
    {"curl --proxy-user 'me:p w' x", "curl --proxy-user '[redacted]' x"},
    {"curl -b 'sid=1' x", "curl -b '[redacted]' x"},
    {"curl --oauth2-bearer abc x", "curl --oauth2-bearer [redacted] x"},
    {"cd /x && mysql -phunter2 -u me", "cd /x && mysql -p[redacted] -u me"},
    {"mysql -p -u me", "mysql -p -u me"},
    {"sort -u file | curl x", "sort -u file | curl x"},
    {"sshpass -p pw ssh host", "sshpass -p [redacted] ssh host"},
    {"docker login -u me -p pw reg", "docker login -u me -p [redacted] reg"},
    {"docker run -p 80:80 nginx", "docker run -p 80:80 nginx"},
    {"zip -P pw a.zip a", "zip -P [redacted] a.zip a"},
    {"openssl enc -aes256 -k pw -pass pass:pw",
     "openssl enc -aes256 -k [redacted] -pass [redacted]"},
    {"/usr/bin/redis-cli -a pw ping", "/usr/bin/redis-cli -a [redacted] ping"},
    {"ansible_become_pass=pw", "ansible_become_pass=[redacted]"},
    {"https://h/x?sig=abc&y=1", "https://h/x?sig=[redacted]&y=1"},
    {"kubectl create secret generic s --from-literal=db=pw",
     "kubectl create secret generic s --from-literal=[redacted]"},
    {"npm config set //reg/:_authToken abc", "npm config set //reg/:_authToken [redacted]"},
    {"x SG.abcdefghijklmnop.qrst y", "x [redacted] y"},
    {"echo '-----BEGIN EC PRIVATE KEY-----\nMHc\n-----END EC PRIVATE KEY-----' >k",
     "echo '[redacted]' >k"},
    {"-----BEGIN CERTIFICATE-----", "-----BEGIN CERTIFICATE-----"},
};

static void texts(void **state)
{
    for (size_t i = 0; i < sizeof texts_and_results / sizeof *texts_and_results; i++) {
        AUTO_FREE char *got = audit_redact(texts_and_results[i][0], env);

        assert_string_equal(got, texts_and_results[i][1]);
    }
}

static void no_environment_is_needed(void **state)
{
    AUTO_FREE char *got = audit_redact("hunter2-and-more", NULL);

    assert_string_equal(got, "hunter2-and-more");
}

static void words_and_what_follows_an_option(void **state)
{
    char *const words[] = {(char *)"tool",    (char *)"--api-key", (char *)"abc", (char *)"--keep",
                           (char *)"--token", (char *)"-v",        (char *)"b",   NULL};
    AUTO_JSON json_t *json = audit_redact_words(words, env);
    AUTO_FREE char *text = json_dumps(json, JSON_COMPACT);

    assert_string_equal(text,
                        "[\"tool\",\"--api-key\",\"[redacted]\",\"--keep\",\"--token\",\"-v\","
                        "\"b\"]");
}

static void words_of_a_program_that_is_known(void **state)
{
    static const char *const cases[][6] = {
        {"curl", "-u", "me:pw", "x", NULL, "[\"curl\",\"-u\",\"[redacted]\",\"x\"]"},
        {"mysql", "-ppw", NULL, NULL, NULL, "[\"mysql\",\"-p[redacted]\"]"},
        {"sudo", "/usr/bin/sshpass", "-ppw", NULL, NULL,
         "[\"sudo\",\"/usr/bin/sshpass\",\"-p[redacted]\"]"},
        {"docker", "run", "-p", "80:80", NULL, "[\"docker\",\"run\",\"-p\",\"80:80\"]"},
        {"sh", "-c", "curl -u me:pw x", NULL, NULL, "[\"sh\",\"-c\",\"curl -u [redacted] x\"]"},
        {"sort", "-u", "file", NULL, NULL, "[\"sort\",\"-u\",\"file\"]"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_JSON json_t *json = audit_redact_words((char *const *)cases[i], env);
        AUTO_FREE char *text = json_dumps(json, JSON_COMPACT);

        assert_string_equal(text, cases[i][5]);
    }
}

static void long_command_lines_are_cut(void **state)
{
    AUTO_FREE char *huge = malloc(100000);
    char *const words[] = {(char *)"echo", huge, NULL};
    AUTO_JSON json_t *json = NULL;

    memset(huge, 'a', 99999);
    huge[99999] = '\0';
    json = audit_redact_words(words, env);
    assert_int_equal(json_array_size(json), 2);
    assert_string_equal(json_string_value(json_array_get(json, 1)), "[1 more words]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts),
        cmocka_unit_test(no_environment_is_needed),
        cmocka_unit_test(words_and_what_follows_an_option),
        cmocka_unit_test(words_of_a_program_that_is_known),
        cmocka_unit_test(long_command_lines_are_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
