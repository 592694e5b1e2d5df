/** Repository URL: a release writes it into package.json, and the dashboard links to it. */
import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';

/** Field of package.json: an object, a URL, or `owner/name` for GitHub. */
export type Repository = string | { url: string };

/** Returns the web URL of the repository, or undefined if the field has none, such as an SSH URL. */
export function repositoryUrl(field: Repository | undefined): string | undefined {
  const text = typeof field === 'string' ? field : field?.url;
  const url = text
    ?.replace(/^(?:github:)?([\w-]+\/[\w.-]+)$/, 'https://github.com/$1')
    .replace(/^git\+(?=https?:)|\.git$/g, '');
  return url && /^https?:\/\//.test(url) ? url : undefined;
}

/** Returns the URL of the repository whose workflow is running, or undefined outside a workflow. */
export function workflowRepository({ GITHUB_SERVER_URL, GITHUB_REPOSITORY }: NodeJS.ProcessEnv): string | undefined {
  return GITHUB_SERVER_URL && GITHUB_REPOSITORY && `${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}`;
}

/** Writes the URL into package.json in the working directory if this file is run. */
if (import.meta.main) {
  const url = workflowRepository(process.env);
  if (!url) throw new Error('The repository is unknown. Set GITHUB_SERVER_URL and GITHUB_REPOSITORY, as GitHub does.');
  const file = resolve('package.json');
  const manifest = JSON.parse(readFileSync(file, 'utf8')) as object;
  const fields = {
    repository: { type: 'git', url: `git+${url}.git` },
    bugs: { url: `${url}/issues` },
    homepage: `${url}#readme`,
  };
  writeFileSync(file, `${JSON.stringify({ ...manifest, ...fields }, undefined, 2)}\n`);
}
