import { Alert, Anchor, Badge, Button, Group, Stack, Switch, Text } from '@mantine/core';
import { changesText } from '../../../../src/operations/import-changes.ts';
import type { ServerDetail } from '../../answers.ts';
import { api } from '../../api.ts';
import { useCanEdit } from '../../frame/session.ts';
import { queryKeys } from '../../query-keys.ts';
import { useAction } from '../../ui/actions/use-action.ts';
import { Section } from '../../ui/section.tsx';
import { ProblemAlert, sentence } from '../../ui/states/problem-alert.tsx';
import { Time } from '../../ui/text/time.tsx';
import { visible } from '../../ui/text/visible.ts';

type Props = { detail: ServerDetail; url: string | undefined };

/** Where the description came from, what the last check found, and whether it is checked every day. */
export function OriginSection({ detail: { server }, url }: Props) {
  const { slug, imported } = server;
  const canEdit = useCanEdit();
  const refresh = [queryKeys.servers];
  const watch = useAction({
    run: (isOn: boolean) => api('watchImport', { slug, watch: isOn ? 'daily' : 'never' }),
    done: (_, isOn) => (isOn ? 'The description is checked every day' : 'The description is no longer checked'),
    refresh,
  });
  const check = useAction({ run: () => api('compareImport', { slug }), refresh });
  const error = watch.error ?? check.error;
  return (
    <Section
      title="Description"
      text={
        url === undefined ? (
          'This server was imported from a text. Import it again from an address to have it checked.'
        ) : (
          <>
            Imported from{' '}
            <Anchor
              href={/^https?:/.test(url) ? url : undefined}
              rel="noreferrer"
              target="_blank"
              size="sm"
              className="th-value"
            >
              {visible(url)}
            </Anchor>
          </>
        )
      }
      actions={<State imported={imported} />}
    >
      {url !== undefined && (
        <Stack gap="sm">
          {imported?.error !== undefined && (
            <Alert color="yellow" title="The last check failed">
              {sentence(imported.error)}
            </Alert>
          )}
          {imported?.changed && imported.counts && (
            <Text size="sm">Since the last import: {changesText(imported.counts)}. Read it again to see them.</Text>
          )}
          <Group gap="md">
            <Switch
              label="Check it every day"
              description="Nothing is changed by itself."
              checked={imported?.watch === 'daily'}
              onChange={(event) => watch.mutate(event.currentTarget.checked)}
              disabled={!canEdit || watch.isPending}
            />
            <Button variant="default" onClick={() => check.mutate()} loading={check.isPending} disabled={!canEdit}>
              Check now
            </Button>
          </Group>
          {imported?.checked_at && (
            <Text size="sm" c="dimmed">
              Last checked <Time at={imported.checked_at} />.
            </Text>
          )}
          {error && <ProblemAlert error={error} />}
        </Stack>
      )}
    </Section>
  );
}

function State({ imported }: { imported: ServerDetail['server']['imported'] | undefined }) {
  if (imported?.error !== undefined) return <Badge color="yellow">unreadable</Badge>;
  if (imported?.changed === undefined) return null;
  return imported.changed ? <Badge color="blue">changed</Badge> : <Badge color="green">up to date</Badge>;
}
