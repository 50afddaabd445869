{ lib, python3Packages, fetchurl, installShellFiles, tmux }:

python3Packages.buildPythonApplication rec {
  pname = "tmux-control-plane";
  version = "@VERSION@";
  pyproject = true;

  src = fetchurl {
    url = "@URL@/tmux_control_plane-${version}.tar.gz";
    sha256 = "@SHA256:sdist@";
  };

  build-system = with python3Packages; [ hatchling click ];
  dependencies = with python3Packages; [ click libtmux psutil pyte pyyaml ];
  nativeBuildInputs = [ installShellFiles ];

  makeWrapperArgs = [ "--prefix" "PATH" ":" (lib.makeBinPath [ tmux ]) ];

  postInstall = ''
    for shell in bash zsh fish; do
      PYTHONPATH="$out/${python3Packages.python.sitePackages}:$PYTHONPATH" \
        ${python3Packages.python.interpreter} -m tmuxctl completion $shell > tmuxctl.$shell
    done
    installShellCompletion tmuxctl.bash tmuxctl.zsh tmuxctl.fish
  '';

  # the tests drive tmux and programs that are not here
  doCheck = false;
  pythonImportsCheck = [ "tmuxctl.control" ];

  meta = {
    description = "Drive any interactive terminal program from scripts; tmux keeps it alive";
    homepage = "@URL@";
    license = lib.licenses.mit;
    mainProgram = "tmuxctl";
    platforms = lib.platforms.unix;
  };
}
