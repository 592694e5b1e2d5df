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
type Entry = { id: string; label: string; about?: string | undefined; run: () => void };
type CreateLink = (label: string, to: string, about?: string) => Entry;

/** Icons of entries, by path, and of groups. */
const icons: { [pathOrGroup: string]: typeof IconSearch } = {
  ...Object.fromEntries(pages.map(({ to, Icon }) => [to, Icon])),
  '/api-reference': IconApi,
  '/keys?new': IconKey,
  '/servers/new': IconPlus,
  '/servers/new/import': IconFileUpload,
  '/servers/new/gallery': IconServer2,
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
  const createLink: CreateLink = (label, to, about) => ({ id: to, label, about, run: () => void navigate(to) });
  const ownGroups = useOwnGroups(createLink);
  const { results, isStale } = useSearchResults(query.trim());
  const groups = [
    ...(results ? toGroups(results, createLink) : []),
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
                {entries.map(({ id, label, about, run }) => (
                  <Spotlight.Action
                    key={id}
                    label={label}
                    onClick={run}
                    leftSection={<EntryIcon id={id} group={name} />}
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

function EntryIcon({ id, group }: { id: string; group: string }) {
  const Icon = icons[id] ?? icons[group] ?? IconFile;
  return <Icon size={16} stroke={1.5} aria-hidden />;
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

function toGroups({ servers, tools, keys, calls }: SearchResults, createLink: CreateLink): [string, Entry[]][] {
  return [
    ['Servers', servers.map(({ slug, name }) => createLink(toVisible(name), `/servers/${slug}`, slug))],
    [
      'Tools',
      tools.map(({ server, tool }) =>
        createLink(toVisible(tool), `/servers/${server}/tools?tool=${encodeURIComponent(tool)}`, server),
      ),
    ],
    [
      'API keys',
      keys.map(({ id, name, works }) =>
        createLink(toVisible(name), `/keys?query=${encodeURIComponent(id)}`, works ? id : `${id}, inactive`),
      ),
    ],
    [
      'Calls',
      calls.map(({ id, server, tool, outcome }) => {
        const label = `${toVisible(tool)}: ${outcomeLabels[outcome] ?? outcome}`;
        return createLink(label, `/calls?call=${id}`, `${server} · ${id}`);
      }),
    ],
  ];
}

/** Returns the dashboard's own entries: pages, actions, other workspaces, and guides. */
function useOwnGroups(createLink: CreateLink): [string, Entry[]][] {
  const canEdit = useCanEdit();
  const { workspace, workspaces } = useSession();
  const switchWorkspace = useSwitchWorkspace();
  const actions = [
    createLink('New server', '/servers/new'),
    createLink('Import an API description', '/servers/new/import'),
    createLink('Start from an example', '/servers/new/gallery'),
    createLink('New API key', '/keys?new'),
  ];
  const switchEntries = workspaces
    .filter(({ id }) => id !== workspace.id)
    .map((other): Entry => {
      const label = `Switch to ${toVisible(other.name)}`;
      return { id: other.id, label, about: 'Another workspace', run: () => switchWorkspace.mutate(other) };
    });
  return [
    ['Pages', [...pages.map(({ to, label }) => createLink(label, to)), createLink('REST API', '/api-reference')]],
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
