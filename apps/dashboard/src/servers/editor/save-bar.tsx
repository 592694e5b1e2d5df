import { Alert, Anchor, Box, Button, Group, List, Text } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import { parseMovedSecret } from '@toolhost/tool-config/moved-secret';
import type { ReactNode } from 'react';
import { toSentence } from '../../ui/states/problem-alert.tsx';
import { TextLink } from '../../ui/text/text-link.tsx';
import { asText } from '../config.ts';
import { useEditor, useEditorState, useIsChanged, useValue } from './model/editor-context.ts';
import type { Finding } from './model/findings.ts';
import { goToField } from './model/go-to-field.ts';
import type { Saving } from './model/use-verdict.ts';

type Props = { saving: Saving; message: ReactNode };

const countNotPending = (list: readonly Finding[]) => list.filter(({ isPending }) => !isPending).length;
const pluralize = (count: number, noun: string) => `${count} ${noun}${count === 1 ? '' : 's'}`;

/**
 * Bar with the Save button, on the page or in the tool drawer, while something is unsaved. `message` describes the
 * version to be saved.
 */
export function SaveBar({ saving, message }: Props) {
  const { store, isNew } = useEditor();
  const isChanged = useIsChanged();
  const { problems, warnings, isStale } = useEditorState((state) => ({
    problems: state.isRevealed ? countNotPending(state.problems) + (state.draftProblem === undefined ? 0 : 1) : 0,
    warnings: countNotPending(state.warnings),
    isStale: state.isStale,
  }));
  const warningText = warnings > 0 ? `, ${pluralize(warnings, 'warning')}` : '';
  const statusText = isStale && isChanged ? 'Checking…' : (isNew ? 'Not saved yet' : 'Unsaved changes') + warningText;
  const save = () => {
    store.reveal();
    const { draftProblem, problems: currentProblems, isBlocked, config } = store.getState();
    if (draftProblem !== undefined) return;
    if (currentProblems.length === 0 || (isStale && !isBlocked)) saving.mutate(config);
    else goToField(currentProblems[0]?.path ?? '');
  };
  if (!isNew && !isChanged) return null;
  return (
    <Box className="th-save-bar" py="sm">
      <SecretsToSet isChanged={isChanged} />
      <Group justify="space-between" gap="sm">
        <Text role="status" c={problems > 0 ? 'var(--th-bad)' : 'dimmed'}>
          {problems > 0 ? `${pluralize(problems, 'problem')} to fix` : statusText}
        </Text>
        <Group gap="sm">
          {isChanged && message}
          {!isNew && (
            <Button variant="default" onClick={() => store.restart()}>
              Discard
            </Button>
          )}
          <Button onClick={save} loading={saving.isPending}>
            {isNew ? 'Create server' : 'Save'}
          </Button>
        </Group>
      </Group>
    </Box>
  );
}

/** Stored secrets that may not be sent to the configured hosts, with links to set them again. */
export function SecretsToSet({ isChanged }: { isChanged: boolean }) {
  const slug = asText(useValue(['slug']));
  const movedSecrets = useEditorState(({ warnings }) =>
    warnings.flatMap(({ path, message }) => {
      const name = parseMovedSecret(message);
      return name === undefined ? [] : [{ path, message, name }];
    }),
  );
  if (movedSecrets.length === 0) return null;
  return (
    <Alert
      color="yellow"
      icon={<IconAlertTriangle size={18} />}
      title={isChanged ? 'These secrets are not sent to the new host' : 'Calls to a different host are rejected'}
      role="alert"
      mb="sm"
    >
      <List size="sm" spacing={4} listStyleType="none">
        {movedSecrets.map(({ path, message, name }) => (
          <List.Item key={name}>
            {toSentence(message)}{' '}
            {path !== 'tools' ? (
              <Anchor component="button" type="button" underline="always" onClick={() => goToField(path)}>
                Enter it here
              </Anchor>
            ) : isChanged ? (
              <Text component="span" fw={600}>
                Save first, then set it under Secrets.
              </Text>
            ) : (
              <TextLink to={`/servers/${slug}/settings/secrets?name=${name}`} underline="always">
                Set {name} again
              </TextLink>
            )}
          </List.Item>
        ))}
      </List>
    </Alert>
  );
}
