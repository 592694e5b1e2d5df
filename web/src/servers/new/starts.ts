import workedExample from '../../../../examples/projects/server.json';
import { startAnswerTokens } from '../../../../src/domain/pieces/read-more.ts';
import { type Config, newTool } from '../config.ts';

/** Reading public repositories of GitHub: works anywhere, without a credential. */
const publicExample: Config = {
  name: 'GitHub, read only',
  slug: 'github-read',
  description: 'Public repositories of GitHub',
  max_answer_tokens: startAnswerTokens,
  tools: [
    {
      name: 'get_repository',
      description: 'Get a public GitHub repository by its owner and name',
      method: 'GET',
      url: 'https://api.github.com/repos/:owner/:repo',
      headers: { Accept: 'application/vnd.github+json' },
      input_schema: {
        owner: { type: 'string', description: 'Login of the owner, for example nodejs' },
        repo: { type: 'string', description: 'Name of the repository, for example node' },
      },
      response_fields: ['full_name', 'description', 'stargazers_count', 'open_issues_count'],
    },
  ],
};

/** In local mode the example's API runs on the port after the service's own. */
function localExample(port: number): Config {
  const text = JSON.stringify(workedExample).replaceAll('127.0.0.1:8081', `127.0.0.1:${port + 1}`);
  return {
    ...(JSON.parse(text) as Config),
    name: 'My projects',
    slug: 'my-projects',
    max_answer_tokens: startAnswerTokens,
  };
}

export type Start = 'example' | 'json' | 'form';

export function startOf(start: Start): Config {
  if (start === 'form') return { name: '', slug: '', max_answer_tokens: startAnswerTokens, tools: [newTool] };
  if (start === 'json') return {};
  const { hostname, port } = location;
  const isLocal = hostname === '127.0.0.1' || hostname === 'localhost';
  return isLocal && port ? localExample(Number(port)) : publicExample;
}
