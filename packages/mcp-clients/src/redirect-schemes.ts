/**
 * Private-use URI schemes of clients that are not reversed domains, from the redirect URIs that the clients register.
 */
export const clientSchemes: readonly string[] =
  'cursor vscode vscode-insiders windsurf claude zed warp kiro mcpjam'.split(' ');

/**
 * Vendors of operating systems and of very common programs, as they appear in reversed domains: com.microsoft.teams,
 * com.apple.news, org.mozilla.firefox. A client that anyone can register must not start their programs.
 */
export const wellKnownVendors: readonly string[] = `
  adobe airbnb alibaba amazon android apple atlassian baidu booking brave bytedance canonical chrome chromium
  cisco citrix coinbase discord discordapp dropbox ebay epicgames evernote facebook figma firefox freedesktop
  github gnome google googleusercontent huawei instagram intel kde lenovo line linkedin lyft meta microsoft
  mozilla netflix notion nvidia office opera oracle outlook paypal pinterest reddit roblox salesforce samsung
  shopify signal skype slack snapchat sony spotify steampowered stripe teams teamviewer telegram tencent
  thunderbird tiktok tinyspeck trello twitch twitter uber ubercab ubuntu valvesoftware viber videolan vmware webex
  whatsapp windows xbox xiaomi yahoo yandex youtube zhiliaoapp zoom`
  .trim()
  .split(/\s+/);
