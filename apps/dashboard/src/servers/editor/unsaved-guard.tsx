import { Button, Group, Modal, Text } from '@mantine/core';
import { useEffect } from 'react';
import { useBlocker } from 'react-router';

/** Maps the editor's tabs to one page. */
function getPage({ pathname }: { pathname: string }): string {
  return pathname.replace(/\/(?:tools|settings)$/, '/*');
}

/** Asks for confirmation before unsaved changes are lost. */
export function UnsavedGuard({ isUnsaved }: { isUnsaved: boolean }) {
  const blocker = useBlocker(
    ({ currentLocation, nextLocation }) => isUnsaved && getPage(currentLocation) !== getPage(nextLocation),
  );
  useEffect(() => {
    if (!isUnsaved) return;
    const preventUnload = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener('beforeunload', preventUnload);
    return () => removeEventListener('beforeunload', preventUnload);
  }, [isUnsaved]);
  return (
    <Modal opened={blocker.state === 'blocked'} onClose={() => blocker.reset?.()} title="Leave without saving?">
      <Text>Your changes to this configuration have not been saved.</Text>
      <Group justify="flex-end" mt="lg">
        <Button variant="default" onClick={() => blocker.reset?.()}>
          Stay
        </Button>
        <Button color="red.8" onClick={() => blocker.proceed?.()}>
          Discard and leave
        </Button>
      </Group>
    </Modal>
  );
}
