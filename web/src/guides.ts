/** The guides of the documentation: what each is about, by its path in the repository. */
export const guides = {
  'docs/tutorial.md': 'Tutorial: from an API to an agent',
  'docs/tutorial-team.md': 'Tutorial for a team',
  'docs/import.md': 'Importing an API description',
  'docs/configuration.md': 'Writing a configuration',
  'docs/credentials.md': 'Credentials, secrets and API keys',
  'docs/logins.md': 'Logins of people (OAuth)',
  'docs/views.md': 'Views: parts of a server',
  'docs/large-servers.md': 'Large servers, long answers and files',
  'docs/limits.md': 'Limits',
  'docs/files.md': 'Servers as files',
  'docs/clients.md': 'Connecting clients',
  'docs/playground.md': 'Playground: a model of your own with your tools',
  'docs/notifications.md': 'Notifications: webhooks and mail',
  'docs/recipes.md': 'Recipes',
  'docs/troubleshooting.md': 'Troubleshooting: why a tool does not work',
  'docs/command-line.md': 'Command line',
  'docs/rest-api.md': 'REST API',
  'docs/reference/server-configuration.md': 'Reference of the configuration',
  'docs/operations/observability.md': 'Observability: logs, metrics and audit',
} as const;

export type Guide = keyof typeof guides;

/** The address of a guide: on the site that this build was told of, else in its repository; undefined where it knows neither. */
export function guideAddress(guide: Guide): string | undefined {
  const { site, repository } = __DOCUMENTATION__;
  if (site) return `${site}/${guide.replace(/^docs\//, '').replace(/\.md$/, '.html')}`;
  return repository && `${repository}/blob/main/${guide}`;
}
