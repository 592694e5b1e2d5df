/** Private-use schemes of clients that are no reversed domain; from the redirect URIs that they register. */
export const clientSchemes: readonly string[] =
  'cursor vscode vscode-insiders windsurf claude zed warp kiro mcpjam'.split(' ');

/**
 * Makers of systems and of programs that are on nearly every device, as they stand in reversed domains: com.microsoft.teams,
 * com.apple.news, org.mozilla.firefox. A client that anybody can register may not start their programs.
 */
export const wellKnownMakers: readonly string[] = `
  adobe airbnb alibaba amazon android apple atlassian baidu booking brave bytedance canonical chrome chromium
  cisco citrix coinbase discord discordapp dropbox ebay epicgames evernote facebook figma firefox freedesktop
  github gnome google googleusercontent huawei instagram intel kde lenovo line linkedin lyft meta microsoft
  mozilla netflix notion nvidia office opera oracle outlook paypal pinterest reddit roblox salesforce samsung
  shopify signal skype slack snapchat sony spotify steampowered stripe teams teamviewer telegram tencent
  thunderbird tiktok tinyspeck trello twitch twitter uber ubercab ubuntu valvesoftware viber videolan vmware webex
  whatsapp windows xbox xiaomi yahoo yandex youtube zhiliaoapp zoom`
  .trim()
  .split(/\s+/);
