import '@mantine/spotlight/styles.css';
import { Kbd, Text } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { createSpotlight, Spotlight } from '@mantine/spotlight';
import {
  IconActivity,
  IconApi,
  IconArrowRight,
  IconBook,
  IconFile,
  IconFileUpload,
  IconKey,
  IconPlus,
  IconSearch,
  IconServer2,
  IconTool,
} from '@tabler/icons-react';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { useNavigate } from 'react-router';
import { api } from '../api.ts';
import type { SearchResults } from '../api-types.ts';
import { outcomeLabels } from '../calls/call-filter.ts';
import { type Guide, getGuideUrl, guides } from '../guides.ts';
import { toVisible } from '../ui/text/visible.ts';
import { pages } from './navigation.tsx';
import { useCanEdit, useSession } from './session.ts';
import { useSwitchWorkspace } from './workspace-switcher.tsx';

/** Destination or action. The search matches `label` and `about`. */
type Entry = { id: string; label: string; about?: string; Icon?: typeof IconSearch; run: () => void };
type Navigate = (to: string) => void;

const icons: { [group: string]: typeof IconSearch } = {
  Servers: IconServer2,
  Tools: IconTool,
  'API keys': IconKey,
  Calls: IconActivity,
  Actions: IconArrowRight,
  Guides: IconBook,
};

const [store, spotlight] = createSpotlight();

const maxPerGroup = 6;
const maxOwnPerGroup = 8;
const debounceMs = 120;

type Props = {
  searchRequests: number;
  /** Returns what was typed before the field had focus. */
  takeTyped: () => string;
};

/** Command palette that searches everything in the workspace. It opens each time `searchRequests` increases. */
export function Palette({ searchRequests, takeTyped }: Props) {
  const [query, setQuery] = useState('');
  const navigate = useNavigate();
  // biome-ignore lint/correctness/useExhaustiveDependencies: it reopens on each request
  useEffect(() => spotlight.open(), [searchRequests]);
  const go: Navigate = (to) => void navigate(to);
  const ownGroups = useOwnGroups(go);
  const { results, isStale } = useSearchResults(query.trim());
  const groups = [
    ...(results ? toGroups(results, go) : []),
    ...ownGroups.map(([name, entries]) => [name, filterEntries(entries, query)] as const),
  ];
  const entryIds = groups.flatMap(([, entries]) => entries.map(({ id }) => id)).join();
  const isEmpty = groups.every(([, entries]) => entries.length === 0);
  return (
    <Spotlight.Root
      store={store}
      shortcut={null}
      centered={false}
      yOffset="15vh"
      overlayProps={{ backgroundOpacity: 0.3 }}
      query={query}
      onQueryChange={setQuery}
      scrollable
      maxHeight="min(32rem, 70vh)"
      title="Find anything"
      classNames={{ header: 'th-unseen' }}
    >
      <Spotlight.Search
        placeholder="Server, tool, page, or call ID"
        aria-label="Find anything"
        maxLength={100}
        onFocus={() => {
          const typed = takeTyped();
          setQuery((current) => current + typed);
        }}
        leftSection={<IconSearch size={16} stroke={1.5} aria-hidden />}
      />
      <Spotlight.ActionsList>
        {groups.map(
          ([name, entries]) =>
            entries.length > 0 && (
              <Spotlight.ActionsGroup key={name} label={name}>
                {entries.map(({ id, label, about, Icon = icons[name] ?? IconFile, run }) => (
                  <Spotlight.Action
                    key={id}
                    label={label}
                    onClick={run}
                    leftSection={<Icon size={16} stroke={1.5} aria-hidden />}
                    rightSection={about}
                  />
                ))}
              </Spotlight.ActionsGroup>
            ),
        )}
        {isEmpty && <Spotlight.Empty>{isStale ? 'Searching…' : 'No results'}</Spotlight.Empty>}
      </Spotlight.ActionsList>
      <FirstSelection entryIds={entryIds} />
      <Spotlight.Footer>
        <Text size="xs" c="dimmed">
          <Kbd size="xs">↑</Kbd> <Kbd size="xs">↓</Kbd> to navigate, <Kbd size="xs">Enter</Kbd> to open,{' '}
          <Kbd size="xs">Esc</Kbd> to close
        </Text>
      </Spotlight.Footer>
    </Spotlight.Root>
  );
}

/** Selects the first entry of each new list. It is rendered after the list, whose ID it needs. */
function FirstSelection({ entryIds }: { entryIds: string }) {
  // biome-ignore lint/correctness/useExhaustiveDependencies: it selects again when the entries change
  useEffect(() => {
    const actions = document.getElementById(store.getState().listId)?.querySelectorAll('[data-action]') ?? [];
    for (const [index, action] of [...actions].entries()) action.toggleAttribute('data-selected', index === 0);
    store.updateState((state) => ({ ...state, selected: 0 }));
  }, [entryIds]);
  return null;
}

/** Searches the workspace. The previous results stay until the next response arrives. */
function useSearchResults(searchText: string) {
  const [query] = useDebouncedValue(searchText, debounceMs);
  const { data, isFetching } = useQuery({
    queryKey: ['search', query],
    queryFn: ({ signal }) => api('search', { query, limit: maxPerGroup }, { signal }),
    enabled: query !== '',
    placeholderData: keepPreviousData,
  });
  return { results: searchText === '' ? undefined : data, isStale: isFetching || query !== searchText };
}

function toGroups({ servers, tools, keys, calls }: SearchResults, go: Navigate): [string, Entry[]][] {
  return [
    [
      'Servers',
      servers.map(({ slug, name }) => ({
        id: `server ${slug}`,
        label: toVisible(name),
        about: slug,
        run: () => go(`/servers/${slug}`),
      })),
    ],
    [
      'Tools',
      tools.map(({ server, tool }) => ({
        id: `tool ${server} ${tool}`,
        label: toVisible(tool),
        about: server,
        run: () => go(`/servers/${server}/tools?tool=${encodeURIComponent(tool)}`),
      })),
    ],
    [
      'API keys',
      keys.map(({ id, name, works }) => ({
        id,
        label: toVisible(name),
        about: works ? id : `${id}, inactive`,
        run: () => go(`/keys?query=${encodeURIComponent(id)}`),
      })),
    ],
    [
      'Calls',
      calls.map(({ id, server, tool, outcome }) => ({
        id,
        label: `${toVisible(tool)}: ${outcomeLabels[outcome] ?? outcome}`,
        about: `${server} · ${id}`,
        run: () => go(`/calls?call=${id}`),
      })),
    ],
  ];
}

/** Returns the dashboard's own entries: pages, actions, other workspaces, and guides. */
function useOwnGroups(go: Navigate): [string, Entry[]][] {
  const canEdit = useCanEdit();
  const { workspace, workspaces } = useSession();
  const switchWorkspace = useSwitchWorkspace();
  const createLink = (label: string, to: string, Icon: typeof IconSearch): Entry => ({
    id: to,
    label,
    Icon,
    run: () => go(to),
  });
  const actions = [
    createLink('New server', '/servers/new', IconPlus),
    createLink('Import an API description', '/servers/new/import', IconFileUpload),
    createLink('Start from a gallery example', '/servers/new/gallery', IconServer2),
    createLink('New API key', '/keys?new', IconKey),
  ];
  const switchEntries = workspaces
    .filter(({ id }) => id !== workspace.id)
    .map((other): Entry => {
      const label = `Switch to ${toVisible(other.name)}`;
      return { id: other.id, label, about: 'Another workspace', run: () => switchWorkspace.mutate(other) };
    });
  return [
    [
      'Pages',
      [
        ...pages.map(({ to, label, Icon }) => createLink(label, to, Icon)),
        createLink('REST API', '/api-reference', IconApi),
      ],
    ],
    ['Actions', [...(canEdit ? actions : []), ...switchEntries]],
    ['Guides', getGuideEntries()],
  ];
}

function getGuideEntries(): Entry[] {
  return Object.entries(guides).flatMap(([path, label]) => {
    const address = getGuideUrl(path as Guide);
    return address ? [{ id: path, label, run: () => void open(address, '_blank', 'noopener') }] : [];
  });
}

/** Returns the first entries that contain every word. */
function filterEntries(entries: readonly Entry[], query: string): Entry[] {
  const terms = query.toLowerCase().split(/\s+/);
  return entries
    .filter(({ label, about = '' }) => terms.every((term) => `${label} ${about}`.toLowerCase().includes(term)))
    .slice(0, maxOwnPerGroup);
}
