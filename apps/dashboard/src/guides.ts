/** Titles of the documentation guides, by path in the repository. */
export const guides = {
  'docs/tutorial.md': 'Tutorial: from an API to an agent',
  'docs/tutorial-team.md': 'Tutorial for a team',
  'docs/import.md': 'Importing an API description',
  'docs/configuration.md': 'Writing a configuration',
  'docs/credentials.md': 'Credentials, secrets, and API keys',
  'docs/logins.md': 'Logging people in',
  'docs/sign-in.md': 'Sign-in for your team',
  'docs/views.md': 'Views: subsets of a server',
  'docs/large-servers.md': 'Large servers, large responses, and files',
  'docs/limits.md': 'Limits',
  'docs/files.md': 'Servers as files',
  'docs/clients.md': 'Connecting clients',
  'docs/claude-and-chatgpt.md': 'Connect claude.ai and ChatGPT',
  'docs/playground.md': 'Playground: your own model with your tools',
  'docs/notifications.md': 'Notifications: webhooks and email',
  'docs/recipes.md': 'Recipes',
  'docs/troubleshooting.md': 'Troubleshooting: why a tool does not work',
  'docs/command-line.md': 'Command line',
  'docs/rest-api.md': 'REST API',
  'docs/reference/server-configuration.md': 'Configuration reference',
  'docs/operations/observability.md': 'Observability: logs, metrics, and audit',
} as const;

export type Guide = keyof typeof guides;

/** Returns the URL of a guide on the documentation site, or in the repository. Undefined if the build has neither. */
export function getGuideUrl(guide: Guide): string | undefined {
  const { site, repository } = __DOCUMENTATION__;
  if (site) return `${site}/${guide.replace(/^docs\//, '').replace(/\.md$/, '.html')}`;
  return repository && `${repository}/blob/main/${guide}`;
}
