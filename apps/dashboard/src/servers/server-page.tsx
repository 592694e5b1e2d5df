import { ActionIcon, Box, Menu, Modal, NativeSelect } from '@mantine/core';
import { IconDots } from '@tabler/icons-react';
import { Fragment, lazy, Suspense, useState } from 'react';
import { NavLink, Outlet, useLocation, useNavigate, useOutletContext, useParams } from 'react-router';
import { isNotFound } from '../api.ts';
import type { ServerDetail } from '../api-types.ts';
import { NotFoundPage } from '../frame/not-found-page.tsx';
import { useCanEdit } from '../frame/session.ts';
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
  if (isNotFound(query.error)) return <NotFoundPage />;
  return (
    <Loaded query={query}>
      {(detail) => (
        <>
          <Heading detail={detail} />
          <Tabs />
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

/** Page below a server's path, with its guide. */
type ServerPageLink = [path: string, label: string, guide: Guide];

const tabs: readonly ServerPageLink[] = [
  ['', 'Overview', 'docs/troubleshooting.md'],
  ['tools', 'Tools', 'docs/configuration.md'],
  ['try', 'Try it', 'docs/troubleshooting.md'],
  ['calls', 'Calls', 'docs/troubleshooting.md'],
  ['connect', 'Connect', 'docs/clients.md'],
  ['settings', 'Settings', 'docs/configuration.md'],
];
const playground: ServerPageLink = ['try/playground', 'Playground', 'docs/playground.md'];

function getSettings({ server, config }: ServerDetail): ServerPageLink[] {
  const logins: ServerPageLink = ['settings/logins', 'Logins', 'docs/logins.md'];
  const imports: ServerPageLink = ['settings/import', 'Import', 'docs/import.md'];
  return [
    ['settings', 'Configuration', 'docs/configuration.md'],
    ...(hasLoginPage(server) ? [logins] : []),
    ['settings/secrets', 'Secrets', 'docs/credentials.md'],
    ...(config.imported ? [imports] : []),
    ['settings/versions', 'Versions', 'docs/files.md'],
    ['settings/limits', 'Limits', 'docs/limits.md'],
    ['settings/capture', 'Capture', 'docs/troubleshooting.md'],
    ['settings/delete', 'Delete', 'docs/configuration.md'],
  ];
}

/** Returns the current path below that of the server. */
const useServerPath = () => useLocation().pathname.split('/').slice(3).join('/');

function Heading({ detail }: { detail: ServerDetail }) {
  const { server } = detail;
  const currentPath = useServerPath();
  const [, label, guide] =
    [...tabs, ...getSettings(detail), playground].findLast(([path]) => path === currentPath) ?? [];
  return (
    <PageHeader
      title={toVisible(server.name)}
      guide={guide ?? 'docs/troubleshooting.md'}
      section={label}
      text={server.description && toVisible(server.description)}
      back={{ to: '/servers', label: 'Servers' }}
      facts={[
        [
          'URL',
          <Fragment key="url">
            <span className="th-mono">{server.url}</span>
            <CopyButton value={server.url} label="Copy URL" />
          </Fragment>,
        ],
        ['Access', <AccessBadge key="access" server={server} />],
        ...(server.tags?.length ? [['Tags', <Tags key="tags" server={server} />] as const] : []),
      ]}
    >
      <ServerMenu detail={detail} />
    </PageHeader>
  );
}

const DuplicateForm = lazy(async () => ({ default: (await import('./home/duplicate.tsx')).DuplicateForm }));
const TagForm = lazy(async () => ({ default: (await import('./list/tag-form.tsx')).TagForm }));

/** Menu of actions on the server, each with a dialog. */
function ServerMenu({ detail }: { detail: ServerDetail }) {
  const { server } = detail;
  const [dialog, setDialog] = useState<'tags' | 'duplicate'>();
  if (!useCanEdit()) return null;
  const close = () => setDialog(undefined);
  return (
    <>
      <Menu position="bottom-end">
        <Menu.Target>
          <ActionIcon variant="default" size="lg" aria-label="Server actions">
            <IconDots size={16} stroke={1.5} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => setDialog('tags')}>Edit tags</Menu.Item>
          <Menu.Item onClick={() => setDialog('duplicate')}>Duplicate to…</Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <Suspense>
        <Modal opened={dialog === 'tags'} onClose={close} title="Edit tags">
          <TagForm server={server} onDone={close} />
        </Modal>
        <Modal opened={dialog === 'duplicate'} onClose={close} title={`Duplicate ${toVisible(server.name)}`} size="lg">
          <DuplicateForm detail={detail} onClose={close} />
        </Modal>
      </Suspense>
    </>
  );
}

function Tabs() {
  return (
    <nav className="th-tabs" aria-label="Server sections">
      {tabs.map(([path, label]) => (
        <NavLink key={path} to={path || '.'} end={path === ''} className="th-tab">
          {label}
        </NavLink>
      ))}
    </nav>
  );
}

/** Sections of the settings: a list on the left or, in a narrow window, a select. */
function SettingsMenu({ detail }: { detail: ServerDetail }) {
  const currentPath = useServerPath();
  const navigate = useNavigate();
  const sections = getSettings(detail);
  if (!currentPath.startsWith('settings')) return null;
  return (
    <>
      <nav className="th-side-menu" aria-label="Settings">
        {sections.map(([path, label]) => (
          <NavLink key={path} to={path} end className="th-nav-link th-side-link">
            {label}
          </NavLink>
        ))}
      </nav>
      <NativeSelect
        className="th-side-select"
        aria-label="Settings section"
        data={sections.map(([value, label]) => ({ value, label }))}
        value={currentPath}
        onChange={({ currentTarget }) => navigate(currentTarget.value)}
      />
    </>
  );
}
