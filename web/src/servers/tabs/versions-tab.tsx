import { Badge, Box, Button, Center, Group, Stack, Text } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Version } from '../../answers.ts';
import { api } from '../../api.ts';
import { useCanEdit } from '../../frame/session.ts';
import { queryKeys } from '../../query-keys.ts';
import { Confirm } from '../../ui/actions/confirm.tsx';
import { useAction } from '../../ui/actions/use-action.ts';
import { Folded } from '../../ui/folded.tsx';
import { Section } from '../../ui/section.tsx';
import { Loaded } from '../../ui/states/loaded.tsx';
import { PersonName } from '../../ui/text/person-name.tsx';
import { Time } from '../../ui/text/time.tsx';
import { useShownServer } from '../server-page.tsx';
import { Diff } from './diff.tsx';

/** Every stored version with its changes, and a button to restore it. */
export function VersionsTab() {
  const { server } = useShownServer();
  const canEdit = useCanEdit();
  const [wanted, setWanted] = useState<Version>();
  const pages = useInfiniteQuery({
    queryKey: queryKeys.versions(server.slug),
    queryFn: ({ pageParam, signal }) =>
      api('listVersions', { slug: server.slug, limit: 100, cursor: pageParam }, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor,
    select: ({ pages: answers }) => answers.flatMap((page) => page.versions),
  });
  const restore = useAction({
    run: ({ version }: Version) => api('restoreVersion', { slug: server.slug, version }, { version: server.version }),
    done: (stored, { version }) => `Version ${version} is restored as version ${stored.server.version}`,
    refresh: [queryKeys.servers],
    onDone: () => setWanted(undefined),
  });
  const current = (versions: Version[]) => versions.find(({ version }) => version === server.version);
  return (
    <Loaded query={pages}>
      {(versions) => (
        <Section
          title="Versions"
          text="Saving never overwrites: each change is a new version, and so is a restored one. The newest are kept."
        >
          <Stack gap="sm">
            {versions.map((version, index) => (
              <VersionItem
                key={version.version}
                version={version}
                before={versions[index + 1]}
                isCurrent={version.version === server.version}
                onRestore={canEdit ? () => setWanted(version) : undefined}
              />
            ))}
          </Stack>
          {pages.hasNextPage && (
            <Center mt="sm">
              <Button variant="default" loading={pages.isFetchingNextPage} onClick={() => pages.fetchNextPage()}>
                Show older versions
              </Button>
            </Center>
          )}
          <Confirm
            opened={wanted !== undefined}
            title={`Restore version ${wanted?.version ?? ''}?`}
            action="Restore"
            isHarmless
            isPending={restore.isPending}
            error={restore.error}
            onClose={() => setWanted(undefined)}
            onConfirm={() => wanted && restore.mutate(wanted)}
          >
            <Text size="sm">This is what changes. Secrets stay as they are, and nothing is lost.</Text>
            {wanted && <Diff before={current(versions)?.config} after={wanted.config} label="Changes by restoring" />}
          </Confirm>
        </Section>
      )}
    </Loaded>
  );
}

type ItemProps = {
  version: Version;
  before: Version | undefined;
  isCurrent: boolean;
  onRestore: (() => void) | undefined;
};

function VersionItem({ version, before, isCurrent, onRestore }: ItemProps) {
  return (
    <Box className="th-card" p="sm">
      <Group justify="space-between" gap="sm">
        <Group gap="sm">
          <Text fw={600}>Version {version.version}</Text>
          {isCurrent && <Badge color="green">current</Badge>}
          <Text size="sm" c="dimmed">
            <Time at={version.created_at} /> by <PersonName id={version.created_by} name={version.created_by_name} />
          </Text>
        </Group>
        {!isCurrent && onRestore && (
          <Button size="xs" variant="default" onClick={onRestore} aria-label={`Restore version ${version.version}`}>
            Restore
          </Button>
        )}
      </Group>
      {before ? (
        <Folded label={`Changes since version ${before.version}`}>
          <Diff before={before.config} after={version.config} label={`Changes of version ${version.version}`} />
        </Folded>
      ) : (
        <Text size="sm" c="dimmed">
          {version.version === 1 ? 'The first version.' : 'Older versions are not kept, or not shown.'}
        </Text>
      )}
    </Box>
  );
}
