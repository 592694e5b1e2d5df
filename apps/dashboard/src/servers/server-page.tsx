import { Group, Text } from '@mantine/core';
import { useEffect, useRef } from 'react';
import { NavLink, Outlet, useLocation, useOutletContext, useParams } from 'react-router';
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
          <ServerTabs detail={detail} />
          <Outlet context={detail} key={slug} />
        </>
      )}
    </Loaded>
  );
}

function Heading({ detail }: { detail: ServerDetail }) {
  const { server } = detail;
  const { pathname } = useLocation();
  const tab = getTabs(detail).find(({ to }) => to === pathname);
  return (
    <PageHeader
      title={toVisible(server.name)}
      guide={tab?.guide ?? 'docs/troubleshooting.md'}
      section={tab?.label}
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

/** Returns the tabs of a server, each with its guide. */
function getTabs({ server, config }: ServerDetail): { to: string; label: string; guide: Guide }[] {
  const tabs: [string, string, Guide][] = [
    ['', 'Home', 'docs/troubleshooting.md'],
    ['/tools', 'Tools', 'docs/configuration.md'],
    ['/settings', 'Settings', 'docs/configuration.md'],
    ['/calls', 'Calls', 'docs/troubleshooting.md'],
    ['/try', 'Try it', 'docs/troubleshooting.md'],
    ['/playground', 'Playground', 'docs/playground.md'],
    ['/connect', 'Connect', 'docs/clients.md'],
    ['/secrets', 'Secrets', 'docs/credentials.md'],
    ...(hasLoginPage(server) ? [['/logins', 'Logins', 'docs/logins.md'] as [string, string, Guide]] : []),
    ...(config.imported ? [['/import', 'Import', 'docs/import.md'] as [string, string, Guide]] : []),
    ['/versions', 'Versions', 'docs/files.md'],
    ['/options', 'Options', 'docs/limits.md'],
  ];
  return tabs.map(([path, label, guide]) => ({ to: `/servers/${server.slug}${path}`, label, guide }));
}

function ServerTabs({ detail }: { detail: ServerDetail }) {
  const { pathname } = useLocation();
  const navRef = useRef<HTMLElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the tab changes with the path
  useEffect(() => {
    navRef.current?.querySelector('[aria-current="page"]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [pathname]);
  return (
    <nav ref={navRef} className="th-tabs" aria-label="Server sections">
      {getTabs(detail).map(({ to, label }) => (
        <NavLink key={to} to={to} end className="th-tab">
          {label}
        </NavLink>
      ))}
    </nav>
  );
}
