/**
 * Operations that a careful person would choose of well-known APIs for an agent, written down before the proposal was
 * ranked, and the minimum number of them that the proposal must contain.
 */
type ExpectedTools = { file: string; atLeast: number; operations: readonly string[] };

const listOperations = (methodAndPaths: string, before = ''): string[] =>
  methodAndPaths
    .split(/\n|, /)
    .map((line) => line.trim().replace(/,$/, ''))
    .filter((line) => line !== '')
    .map((line) => line.replace(' ', ` ${before}`));

const repository = '/repos/{owner}/{repo}';

export const expectedTools: readonly ExpectedTools[] = [
  {
    file: 'slack.com.json',
    atLeast: 16,
    operations: listOperations(`
      POST /chat.postMessage, POST /chat.update, POST /chat.delete, POST /chat.scheduleMessage,
      GET /conversations.list, GET /conversations.history, GET /conversations.replies, GET /conversations.info,
      GET /conversations.members, POST /conversations.create, POST /conversations.invite, POST /conversations.join,
      POST /conversations.open, GET /users.list, GET /users.info, GET /users.lookupByEmail, POST /reactions.add,
      GET /search.messages, POST /files.upload, GET /files.list`),
  },
  {
    file: 'github.com/api.github.com.json',
    atLeast: 14,
    operations: [
      ...listOperations('GET /search/issues\nGET /search/code\nGET /search/repositories'),
      `GET ${repository}`,
      ...listOperations(
        `
        GET /issues, POST /issues, GET /issues/{issue_number}, PATCH /issues/{issue_number},
        GET /issues/{issue_number}/comments, POST /issues/{issue_number}/comments, GET /pulls, POST /pulls,
        GET /pulls/{pull_number}, PATCH /pulls/{pull_number}, GET /pulls/{pull_number}/files,
        PUT /pulls/{pull_number}/merge, POST /pulls/{pull_number}/reviews, GET /contents/{path},
        PUT /contents/{path}, GET /commits`,
        repository,
      ),
    ],
  },
  {
    // Its tools are so large that these twenty alone exceed 10,000 tokens.
    file: 'stripe.com.json',
    atLeast: 10,
    operations: listOperations(
      `
      GET /customers, POST /customers, GET /customers/{customer}, POST /customers/{customer}, GET /customers/search,
      GET /invoices, POST /invoices, GET /invoices/{invoice}, POST /invoiceitems, POST /invoices/{invoice}/finalize,
      GET /subscriptions, GET /subscriptions/{subscription_exposed_id},
      DELETE /subscriptions/{subscription_exposed_id}, GET /products, POST /products, GET /prices,
      GET /payment_intents, GET /payment_intents/{intent}, POST /refunds, GET /charges`,
      '/v1',
    ),
  },
  {
    file: 'atlassian.com/jira.json',
    atLeast: 13,
    operations: listOperations(
      `
      GET /search, POST /issue, GET /issue/{issueIdOrKey}, PUT /issue/{issueIdOrKey},
      PUT /issue/{issueIdOrKey}/assignee, GET /issue/{issueIdOrKey}/comment, POST /issue/{issueIdOrKey}/comment,
      GET /issue/{issueIdOrKey}/transitions, POST /issue/{issueIdOrKey}/transitions, POST /issueLink,
      GET /issue/{issueIdOrKey}/worklog, POST /issue/{issueIdOrKey}/worklog, GET /issue/{issueIdOrKey}/changelog,
      GET /project/search, GET /project/{projectIdOrKey}, GET /user/search, GET /user/assignable/search, GET /myself,
      GET /issue/createmeta, GET /filter/search`,
      '/rest/api/3',
    ),
  },
  {
    // The description has 13 operations.
    file: 'notion.com.json',
    atLeast: 12,
    operations: listOperations(
      `
      GET /databases/{id}, PATCH /databases/{id}, POST /databases/{id}/query, GET /pages/{id}, PATCH /pages/{id},
      GET /blocks/{id}, PATCH /blocks/{id}, DELETE /blocks/{id}, GET /blocks/{id}/children,
      PATCH /blocks/{id}/children, GET /comments, GET /users/{id}`,
      '/v1',
    ),
  },
];
