import '@mantine/spotlight/styles.css';
import { Kbd, Text } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { Spotlight, spotlight } from '@mantine/spotlight';
import { IconSearch } from '@tabler/icons-react';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { useNavigate } from 'react-router';
import type { Found } from '../answers.ts';
import { api } from '../api.ts';
import { outcomes } from '../calls/call-filter.ts';
import { type Guide, guideAddress, guides } from '../guides.ts';
import { visible } from '../ui/text/visible.ts';
import { pages } from './navigation.tsx';
import { useCanEdit, useSession } from './session.ts';
import { useSwitch } from './workspace-switcher.tsx';

/** Destination or action. The search matches `label` and `about`. */
type Entry = { id: string; label: string; about?: string; run: () => void };
type Go = (to: string) => void;

const eachAtMost = 6;
const pauseMs = 120;

/** Command palette that searches everything in the workspace. It opens each time `asked` increases. */
export function Palette({ asked }: { asked: number }) {
  const [query, setQuery] = useState('');
  const navigate = useNavigate();
  // biome-ignore lint/correctness/useExhaustiveDependencies: it reopens on each request
  useEffect(() => spotlight.open(), [asked]);
  const go: Go = (to) => void navigate(to);
  const own = useOwn(go);
  const { found, isBehind } = useFound(query.trim());
  const groups = [
    ...(found ? groupsOf(found, go) : []),
    ...own.map(([name, all]) => [name, fitting(all, query)] as const),
  ];
  const isEmpty = groups.every(([, entries]) => entries.length === 0);
  return (
    <Spotlight.Root
      shortcut={null}
      query={query}
      onQueryChange={setQuery}
      scrollable
      maxHeight="min(32rem, 80vh)"
      title="Find anything"
      classNames={{ header: 'th-unseen' }}
    >
      <Spotlight.Search
        placeholder="Servers, tools, keys, pages, guides, or a call ID"
        aria-label="Find anything"
        maxLength={100}
        leftSection={<IconSearch size={18} aria-hidden />}
        onKeyDown={(event) => event.key === 'Enter' && !isBehind && pressFirst(event.currentTarget)}
      />
      <Spotlight.ActionsList>
        {groups.map(
          ([name, entries]) =>
            entries.length > 0 && (
              <Spotlight.ActionsGroup key={name} label={name}>
                {entries.map(({ id, label, about, run }) => (
                  <Spotlight.Action key={id} label={label} onClick={run} description={about} />
                ))}
              </Spotlight.ActionsGroup>
            ),
        )}
        {isEmpty && <Spotlight.Empty>{isBehind ? 'Searching…' : 'No results'}</Spotlight.Empty>}
      </Spotlight.ActionsList>
      <Spotlight.Footer>
        <Text size="xs" c="dimmed">
          <Kbd size="xs">↑</Kbd> <Kbd size="xs">↓</Kbd> to navigate, <Kbd size="xs">Enter</Kbd> to open,{' '}
          <Kbd size="xs">Esc</Kbd> to close
        </Text>
      </Spotlight.Footer>
    </Spotlight.Root>
  );
}

/** Opens the first entry on Enter if none is selected. */
function pressFirst(input: HTMLElement): void {
  const dialog = input.closest('[role="dialog"]');
  if (dialog?.querySelector('[data-selected]')) return;
  dialog?.querySelector<HTMLElement>('[data-action]')?.click();
}

/** Searches the workspace. The previous results stay until the next response arrives. */
function useFound(typed: string) {
  const [query] = useDebouncedValue(typed, pauseMs);
  const { data, isFetching } = useQuery({
    queryKey: ['search', query],
    queryFn: ({ signal }) => api('search', { query, limit: eachAtMost }, { signal }),
    enabled: query !== '',
    placeholderData: keepPreviousData,
  });
  return { found: typed === '' ? undefined : data, isBehind: isFetching || query !== typed };
}

function groupsOf({ servers, tools, keys, calls }: Found, go: Go): [string, Entry[]][] {
  const at = encodeURIComponent;
  return [
    [
      'Servers',
      servers.map(({ slug, name }) => ({
        id: `server ${slug}`,
        label: visible(name),
        about: `/mcp/${slug}`,
        run: () => go(`/servers/${slug}`),
      })),
    ],
    [
      'Tools',
      tools.map(({ server, server_name, tool }) => ({
        id: `tool ${server} ${tool}`,
        label: visible(tool),
        about: `in ${visible(server_name)}`,
        run: () => go(`/servers/${server}/tools?tool=${at(tool)}`),
      })),
    ],
    [
      'API keys',
      keys.map(({ id, name, works }) => ({
        id,
        label: visible(name),
        about: works ? id : `${id}, inactive`,
        run: () => go(`/keys?query=${at(id)}`),
      })),
    ],
    [
      'Calls',
      calls.map(({ id, server, tool, outcome }) => ({
        id,
        label: `${visible(tool)} in ${server}: ${outcomes[outcome] ?? outcome}`,
        about: id,
        run: () => go(`/calls?call=${id}`),
      })),
    ],
  ];
}

/** Returns the dashboard's own entries: pages, actions, other workspaces, and guides. */
function useOwn(go: Go): [string, Entry[]][] {
  const canEdit = useCanEdit();
  const { workspace, workspaces } = useSession();
  const change = useSwitch();
  const link = (label: string, to: string): Entry => ({ id: to, label, run: () => go(to) });
  const actions = [
    link('New server', '/servers/new'),
    link('Import an API description', '/servers/new/import'),
    link('Start from a gallery example', '/servers/new/gallery'),
    link('New API key', '/keys?new'),
  ];
  const others = workspaces
    .filter(({ id }) => id !== workspace.id)
    .map((other): Entry => {
      const label = `Switch to ${visible(other.name)}`;
      return { id: other.id, label, about: 'Another workspace', run: () => change.mutate(other) };
    });
  return [
    ['Pages', [...pages.map(({ to, label }) => link(label, to)), link('REST API', '/api-reference')]],
    ['Actions', [...(canEdit ? actions : []), ...others]],
    ['Guides', guideEntries()],
  ];
}

function guideEntries(): Entry[] {
  return Object.entries(guides).flatMap(([path, label]) => {
    const address = guideAddress(path as Guide);
    return address ? [{ id: path, label, run: () => void open(address, '_blank', 'noopener') }] : [];
  });
}

/** Returns the first entries that contain every word. */
function fitting(entries: readonly Entry[], query: string): Entry[] {
  const words = query.toLowerCase().split(/\s+/);
  return entries
    .filter(({ label, about = '' }) => words.every((word) => `${label} ${about}`.toLowerCase().includes(word)))
    .slice(0, eachAtMost + 2);
}
