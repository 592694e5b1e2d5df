import { Box, Group, NativeSelect, Text } from '@mantine/core';
import { NavLink, Outlet, useLocation, useNavigate, useOutletContext, useParams } from 'react-router';
import { ApiProblem } from '../api.ts';
import type { ServerDetail } from '../api-types.ts';
import { NotFoundPage } from '../frame/not-found-page.tsx';
import type { Guide } from '../guides.ts';
import { CopyButton } from '../ui/actions/copy-button.tsx';
import { PageHeader } from '../ui/page-header.tsx';
import { Loaded } from '../ui/states/loaded.tsx';
import { AccessBadge } from '../ui/text/access-badge.tsx';
import { toVisible } from '../ui/text/visible.ts';
import { hasLoginPage } from './access.ts';
import { Tags } from './list/tags.tsx';
import { useServer } from './server-queries.ts';

/** Returns the server shown in the tabs. */
export function useCurrentServer(): ServerDetail {
  return useOutletContext<ServerDetail>();
}

export function ServerPage() {
  const { slug = '' } = useParams();
  const query = useServer(slug);
  if (query.error instanceof ApiProblem && query.error.status === 404) return <NotFoundPage />;
  return (
    <Loaded query={query}>
      {(detail) => (
        <>
          <Heading detail={detail} />
          <Tabs slug={slug} />
          <div className="th-server-page">
            <SettingsMenu detail={detail} />
            <Box miw={0}>
              <Outlet context={detail} key={slug} />
            </Box>
          </div>
        </>
      )}
    </Loaded>
  );
}

function Heading({ detail }: { detail: ServerDetail }) {
  const { server } = detail;
  const { pathname } = useLocation();
  const playground = toLinks(server.slug, [['/try/playground', 'Playground', 'docs/playground.md']]);
  const pages = [...getTabs(server.slug), ...getSettings(detail), ...playground];
  const page = pages.findLast(({ to }) => to === pathname);
  return (
    <PageHeader
      title={toVisible(server.name)}
      guide={page?.guide ?? 'docs/troubleshooting.md'}
      section={page?.label}
      text={server.description && toVisible(server.description)}
      back={{ to: '/servers', label: 'Servers' }}
    >
      <Tags server={server} />
      <AccessBadge server={server} />
      <Group gap={6} wrap="nowrap">
        <Text className="th-mono" size="sm" component="span">
          {server.url}
        </Text>
        <CopyButton value={server.url} label="Copy URL" />
      </Group>
    </PageHeader>
  );
}

/** Page below a server's path, with its guide. */
type ServerPageLink = { to: string; label: string; guide: Guide };

const toLinks = (slug: string, pages: readonly [path: string, label: string, guide: Guide][]): ServerPageLink[] =>
  pages.map(([path, label, guide]) => ({ to: `/servers/${slug}${path}`, label, guide }));

function getTabs(slug: string): ServerPageLink[] {
  return toLinks(slug, [
    ['', 'Overview', 'docs/troubleshooting.md'],
    ['/tools', 'Tools', 'docs/configuration.md'],
    ['/try', 'Try it', 'docs/troubleshooting.md'],
    ['/calls', 'Calls', 'docs/troubleshooting.md'],
    ['/connect', 'Connect', 'docs/clients.md'],
    ['/settings', 'Settings', 'docs/configuration.md'],
  ]);
}

function getSettings({ server, config }: ServerDetail): ServerPageLink[] {
  return toLinks(server.slug, [
    ['/settings', 'Configuration', 'docs/configuration.md'],
    ...(hasLoginPage(server) ? [['/settings/logins', 'Logins', 'docs/logins.md'] as [string, string, Guide]] : []),
    ['/settings/secrets', 'Secrets', 'docs/credentials.md'],
    ...(config.imported ? [['/settings/import', 'Import', 'docs/import.md'] as [string, string, Guide]] : []),
    ['/settings/versions', 'Versions', 'docs/files.md'],
    ['/settings/limits', 'Limits', 'docs/limits.md'],
    ['/settings/capture', 'Capture', 'docs/troubleshooting.md'],
    ['/settings/delete', 'Delete', 'docs/configuration.md'],
  ]);
}

function Tabs({ slug }: { slug: string }) {
  return (
    <nav className="th-tabs" aria-label="Server sections">
      {getTabs(slug).map(({ to, label }, index) => (
        <NavLink key={to} to={to} end={index === 0} className="th-tab">
          {label}
        </NavLink>
      ))}
    </nav>
  );
}

/** Sections of the settings: a list on the left or, in a narrow window, a select. */
function SettingsMenu({ detail }: { detail: ServerDetail }) {
  const { pathname } = useLocation();
  const navigate = useNavigate();
  const sections = getSettings(detail);
  if (!pathname.startsWith(`/servers/${detail.server.slug}/settings`)) return null;
  return (
    <>
      <nav className="th-side-menu" aria-label="Settings">
        {sections.map(({ to, label }) => (
          <NavLink key={to} to={to} end className="th-nav-link th-side-link">
            {label}
          </NavLink>
        ))}
      </nav>
      <NativeSelect
        className="th-side-select"
        aria-label="Settings section"
        data={sections.map(({ to, label }) => ({ value: to, label }))}
        value={pathname}
        onChange={({ currentTarget }) => navigate(currentTarget.value)}
      />
    </>
  );
}
