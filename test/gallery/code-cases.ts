import type { GalleryExample } from './case.ts';

const issue = {
  id: 1,
  node_id: 'MDU6SXNzdWUx',
  number: 1347,
  title: 'Found a bug',
  state: 'open',
  body: "I'm having a problem with this.",
  user: { login: 'octocat', id: 1, type: 'User' },
  labels: [{ id: 208045946, name: 'bug', color: 'f29513' }],
  assignees: [],
  comments: 0,
  html_url: 'https://github.com/octocat/Hello-World/issues/1347',
  created_at: '2011-04-22T13:33:48Z',
  updated_at: '2011-04-22T13:33:48Z',
  closed_at: null,
};

const repo = { owner: 'octocat', repo: 'Hello-World' };
const { number, title, state, comments, html_url, created_at, updated_at } = issue;
const user = { login: 'octocat' };
const repository = {
  full_name: 'dtrupenn/Tetris',
  description: 'A C implementation of Tetris using Pennsim through LC4',
  html_url: 'https://github.com/dtrupenn/Tetris',
  stargazers_count: 1,
  language: 'Assembly',
  updated_at: '2013-01-05T17:58:47Z',
};

/** Responses as documented at docs.github.com/rest. */
const github: GalleryExample = {
  name: 'github',
  origins: ['https://api.github.com'],
  env: { GITHUB_TOKEN: 'github_pat_example' },
  headers: { authorization: 'Bearer github_pat_example', 'x-github-api-version': '2022-11-28' },
  cases: [
    {
      call: ['search_repositories', { q: 'tetris language:assembly', sort: 'stars' }],
      request: 'GET /search/repositories?q=tetris%20language%3Aassembly&sort=stars&per_page=10',
      headers: { accept: 'application/vnd.github+json' },
      response: {
        total_count: 40,
        incomplete_results: false,
        items: [{ id: 3081286, ...repository, score: 1 }],
      },
      result: [repository],
    },
    {
      call: ['read_file', { ...repo, path: 'docs/read me.md', ref: 'main' }],
      request: 'GET /repos/octocat/Hello-World/contents/docs/read%20me.md?ref=main',
      headers: { accept: 'application/vnd.github.raw' },
      response: '# Hello World\n',
      responseHeaders: { 'content-type': 'application/vnd.github.raw; charset=utf-8' },
    },
    {
      call: ['list_issues', { ...repo, labels: ['bug', 'good first issue'], state: 'all' }],
      request: 'GET /repos/octocat/Hello-World/issues?state=all&labels=bug,good%20first%20issue&per_page=20',
      response: [issue],
      responseHeaders: { link: '<https://api.github.com/repositories/1/issues?page=2>; rel="next"' },
      result: [{ number, title, state, user, comments, html_url, created_at, updated_at }],
    },
    {
      call: ['get_issue', { ...repo, number: 1347 }],
      request: 'GET /repos/octocat/Hello-World/issues/1347',
      response: issue,
      result: {
        ...{ number, title, state, user, comments, html_url, created_at },
        ...{ body: issue.body, assignees: [], labels: issue.labels, closed_at: null },
      },
    },
    {
      call: ['create_issue', { ...repo, title: 'Found a bug', body: 'It hurts.', labels: ['bug'] }],
      request: 'POST /repos/octocat/Hello-World/issues',
      body: { title: 'Found a bug', body: 'It hurts.', labels: ['bug'] },
      response: issue,
      result: { number, title, html_url },
    },
    {
      call: ['comment_on_issue', { ...repo, number: 1347, body: 'Me too' }],
      request: 'POST /repos/octocat/Hello-World/issues/1347/comments',
      body: { body: 'Me too' },
      response: { id: 7, node_id: 'x', html_url: `${issue.html_url}#issuecomment-7`, body: 'Me too' },
      result: { id: 7, html_url: `${issue.html_url}#issuecomment-7` },
    },
    {
      call: ['list_pull_requests', { ...repo, base: 'main', page: 2 }],
      request: 'GET /repos/octocat/Hello-World/pulls?base=main&per_page=20&page=2',
      response: [],
    },
  ],
};

/** Responses as documented for Linear's GraphQL API. */
const linear: GalleryExample = {
  name: 'linear',
  origins: ['https://api.linear.app'],
  env: { LINEAR_API_KEY: 'lin_api_example' },
  headers: { authorization: 'lin_api_example', 'content-type': 'application/json' },
  cases: [
    {
      call: ['list_teams', {}],
      request: 'POST /graphql',
      body: { query: 'query { teams(first: 100) { nodes { id key name } } }' },
      response: { data: { teams: { nodes: [{ id: '9cfb482a', key: 'ENG', name: 'Engineering' }] } } },
    },
    {
      call: ['search_issues', { term: 'login :term' }],
      request: 'POST /graphql',
      body: {
        query:
          'query($term: String!, $first: Int) { searchIssues(term: $term, first: $first) { nodes { identifier title url priorityLabel state { name } assignee { name } } } }',
        variables: { term: 'login :term', first: 20 },
      },
      response: { data: { searchIssues: { nodes: [] } } },
    },
    {
      call: ['get_issue', { id: 'ENG-42' }],
      request: 'POST /graphql',
      body: {
        query:
          'query($id: String!) { issue(id: $id) { id identifier title description url priorityLabel state { name } assignee { name } comments { nodes { body user { name } } } } }',
        variables: { id: 'ENG-42' },
      },
      response: { errors: [{ message: 'Entity not found' }], data: null },
    },
    {
      call: ['create_issue', { team_id: '9cfb482a', title: 'New issue', priority: 2 }],
      request: 'POST /graphql',
      body: {
        query:
          'mutation($input: IssueCreateInput!) { issueCreate(input: $input) { success issue { identifier url } } }',
        variables: { input: { teamId: '9cfb482a', title: 'New issue', priority: 2 } },
      },
      response: {
        data: { issueCreate: { success: true, issue: { identifier: 'ENG-43', url: 'https://linear.app/x' } } },
      },
    },
    {
      call: ['comment_on_issue', { issue_id: 'a1', text: 'Done' }],
      request: 'POST /graphql',
      body: {
        query: 'mutation($input: CommentCreateInput!) { commentCreate(input: $input) { success comment { url } } }',
        variables: { input: { issueId: 'a1', body: 'Done' } },
      },
      response: { data: { commentCreate: { success: true, comment: { url: 'https://linear.app/x#c' } } } },
    },
  ],
};

export const codeExamples = [github, linear];
