/** Section of the navigation: title, pages in order, and a folder whose remaining pages are added at the end. */
export type Section = { title: string; folder?: string; pages: readonly string[] };

/** Navigation, with repository paths. A page that is not listed is added to the section of its folder. */
export const navigation: readonly Section[] = [
  {
    title: 'Get started',
    pages: [
      'README.md',
      'docs/tutorial.md',
      'docs/docker.md',
      'docs/frameworks.md',
      'docs/tutorial-team.md',
      'docs/tutorial-operator.md',
      'docs/claude-and-chatgpt.md',
      'docs/decide.md',
      'docs/faq.md',
      'docs/pages.md',
    ],
  },
  {
    title: 'Servers',
    folder: 'docs',
    pages: [
      'docs/configuration.md',
      'docs/import.md',
      'docs/credentials.md',
      'docs/logins.md',
      'docs/large-servers.md',
      'docs/views.md',
      'docs/playground.md',
      'docs/limits.md',
      'docs/notifications.md',
      'docs/files.md',
      'docs/publishing.md',
      'docs/recipes.md',
      'docs/troubleshooting.md',
      'docs/clients.md',
    ],
  },
  {
    title: 'Operations',
    folder: 'docs/operations',
    pages: [
      'docs/operations/installation.md',
      'docs/operations/deployment.md',
      'docs/sign-in.md',
      'docs/operations/proxies.md',
      'docs/operations/sizing.md',
      'docs/operations/backup.md',
      'docs/operations/upgrades.md',
      'docs/operations/master-key.md',
      'docs/operations/observability.md',
    ],
  },
  {
    title: 'Reference',
    folder: 'docs/reference',
    pages: [
      'docs/command-line.md',
      'docs/rest-api.md',
      'docs/reference/operations.md',
      'docs/reference/server-configuration.md',
      'docs/reference/environment.md',
      'docs/reference/limits.md',
      'docs/reference/clients.md',
      'docs/reference/metrics.md',
    ],
  },
  {
    title: 'Examples',
    pages: ['examples/gallery/README.md', 'examples/logins/README.md', 'examples/projects/README.md'],
  },
  { title: 'Project', pages: ['CHANGELOG.md', 'SECURITY.md'] },
  {
    title: 'Contributing',
    folder: 'docs/contributing',
    pages: [
      'CONTRIBUTING.md',
      'ARCHITECTURE.md',
      'docs/contributing/specification.md',
      'docs/contributing/promises.md',
      'bench/README.md',
      'bench/report.md',
      'bench/report-soak.md',
    ],
  },
];
