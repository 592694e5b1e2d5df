import { Alert, Anchor, List, Text } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import { Link } from 'react-router';
import { movedSecretIn } from '../../../../src/domain/warnings/moved-secret.ts';
import { sentence } from '../../ui/states/problem-alert.tsx';
import { textOf } from '../config.ts';
import { useIsChanged, useValue } from './model/editor-context.ts';
import { goToField } from './model/go-to-field.ts';
import { useChecking } from './model/known-problems.tsx';

/** The stored secrets that may not go to the hosts on screen, and where each is set again. */
export function SecretsToSet() {
  const { warnings } = useChecking();
  const isChanged = useIsChanged();
  const slug = textOf(useValue(['slug']));
  const moved = warnings.flatMap(({ path, message }) => {
    const name = movedSecretIn(message);
    return name === undefined ? [] : [{ path, message, name }];
  });
  if (moved.length === 0) return null;
  return (
    <Alert
      color="yellow"
      icon={<IconAlertTriangle size={18} />}
      title={isChanged ? 'These secrets do not go to the new host' : 'Calls to another host are refused'}
      role="alert"
      mb="sm"
    >
      <List size="sm" spacing={4} listStyleType="none">
        {moved.map(({ path, message, name }) => (
          <List.Item key={name}>
            {sentence(message)}{' '}
            {path !== 'tools' ? (
              <Anchor component="button" type="button" size="sm" underline="always" onClick={() => goToField(path)}>
                Type it here
              </Anchor>
            ) : isChanged ? (
              <Text component="span" size="sm" fw={600}>
                Save first, then set it under Secrets.
              </Text>
            ) : (
              <Anchor component={Link} to={`/servers/${slug}/secrets?name=${name}`} size="sm" underline="always">
                Set {name} again
              </Anchor>
            )}
          </List.Item>
        ))}
      </List>
    </Alert>
  );
}
